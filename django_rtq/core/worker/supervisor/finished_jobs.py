"""Settles jobs that a dead or blocked process has finished and not reported, so that they do not run again (G2)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from django_rtq.core.broker.settlement import Report, Settlement
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.jobs.failure import Failure
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.jobs.outcome import is_result_lost
from django_rtq.core.worker.outcome import ACKED, BURIED, COUNTED_AS, RETRIED
from django_rtq.core.worker.run_metrics import RunMetrics
from django_rtq.core.worker.shared_memory import Finished

logger = logging.getLogger("django_rtq")


def settle_finished(
    broker: WorkerBroker,
    queues: Sequence[str],
    worker: str,
    finished: Sequence[Finished],
    *,
    counts: RunMetrics | None = None,
) -> None:
    """Settle these jobs as far as Redis does not have their outcomes. Raises BrokerError. May be repeated.

    Their signals were sent by the process. `counts`: what a dead process had counted, without these jobs. They
    are added, and what was sent is removed. A process that lives counts them itself.
    """
    if not finished:
        return
    for queue, attempts in broker.attempts(worker, queues).items():
        # A job whose retry was reported may run again in the same worker: then its attempt is another one.
        unreported = [job for job in finished if job.job_id in attempts and job.attempt in (0, attempts[job.job_id])]
        if not unreported:
            continue
        settlement = Settlement()
        for job in unreported:
            settlement.add(_report_of(job, worker))
        if counts is not None:
            _count(broker, queue, unreported, counts)
            settlement.metrics = counts.calls(queue)
            counts.forget(queue)
        broker.settle(worker, queue, settlement)
        logger.info("settled finished jobs of worker %s: %d", worker, len(unreported))
        _warn_of_lost_results(queue, unreported)


def _report_of(job: Finished, worker: str) -> Report:
    text = job.text or (_lost_failure(job, worker) if job.verb in (RETRIED, BURIED) else b"")
    return Report(job.verb, job.job_id, job.ms, text, int(job.is_counted))


def _warn_of_lost_results(queue: str, jobs: Sequence[Finished]) -> None:
    for job in jobs:
        if job.verb == ACKED and is_result_lost(job.text):
            job_id = job.job_id.decode(errors="replace")
            extra = about_jobs([job_id], queue=queue)
            logger.warning("job %s succeeded, but its result is lost", job_id, extra=extra)


def _count(broker: WorkerBroker, queue: str, jobs: Sequence[Finished], counts: RunMetrics) -> None:
    for job, (_, task) in zip(jobs, broker.heads(queue, [job.job_id for job in jobs]), strict=True):
        if task and job.verb in COUNTED_AS:
            counts.add(queue, task, *COUNTED_AS[job.verb])


def _lost_failure(job: Finished, worker: str) -> bytes:
    """A failure without its error."""
    failure = Failure(
        at=time.time_ns() // 1_000_000,
        attempt=job.attempt,
        worker=worker,
        error="The error is lost: its text was too long to keep, and the process was killed before it reached Redis.",
    )
    return failure.line().encode()
