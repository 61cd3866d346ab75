"""Jobs that a session claims and settles, without a worker process."""

from django_rtq.core.worker.outcome import Acked
from django_rtq.core.worker.process.run import Run
from tests.support.jobs import queued_job

BODY = '{"task":"tests.app.tasks.note","args":["x"]}'
DONE = Acked('{"state":"succeeded"}')


def claim(session, wanted=10):
    """Runs of what a fetch brings."""
    runs = claim_unread(session, wanted)
    for run in runs:
        run.open()
    return runs


def claim_unread(session, wanted=10):
    """The same, before anybody has looked into the records."""
    return [
        Run(claimed.queue, job_id, record, worker=session.worker, now_ms=claimed.now_ms)
        for claimed in session.fetch(wanted, idle=True).claimed
        for job_id, record in zip(claimed.ids, claimed.records, strict=True)
    ]


def enqueue(broker, count=1):
    return [queued_job(broker, body=BODY) for _ in range(count)]
