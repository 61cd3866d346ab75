"""Claims jobs and reads their records, as a worker does."""

from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.jobs.record import read_record
from tests.support.jobs import QUEUE


def take_all(broker, *, queue=QUEUE, wanted=100, worker="taker"):
    """Claim up to so many jobs, in the order in which they would run."""
    for_workers(broker).sign_on([queue], worker)
    return [
        read_record(job_id.decode(), queue, record)
        for claimed in for_workers(broker).claim(worker, [queue], wanted).claimed
        for job_id, record in zip(claimed.ids, claimed.records, strict=True)
    ]


def take(broker, **options):
    """Claim the one job that waits."""
    (job,) = take_all(broker, **options)
    return job
