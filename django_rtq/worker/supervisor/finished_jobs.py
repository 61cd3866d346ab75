"""Settles jobs that a dead or blocked process has finished and not reported, so that they do not run again (G2)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from django_rtq.broker.broker import Broker
from django_rtq.broker.settlement import UNKNOWN_CLIENT, Settlement
from django_rtq.jobs.failure import Failure
from django_rtq.jobs.log_fields import about_jobs
from django_rtq.jobs.outcome import is_result_lost
from django_rtq.worker.run_counts import QueueCounts
from django_rtq.worker.shared_entries import ACKED, BURIED, CANCELLED, EXPIRED, RETRIED, Finished

logger = logging.getLogger("django_rtq")

_COUNTED = {ACKED: ("done",), RETRIED: ("failed", "retried"), BURIED: ("failed", "dead"), EXPIRED: ("expired",)}


def settle_finished(
    broker: Broker,
    queues: Sequence[str],
    worker: str,
    finished: Sequence[Finished],
    *,
    counts: dict[str, QueueCounts] | None = None,
) -> None:
    """Settle these jobs as far as Redis does not have their outcomes. Raises BrokerError. May be repeated.

    Their signals were sent by the process. `counts`: what a dead process had counted by queue, without these jobs. They
    are added, and what was sent is removed. A process that lives counts them itself.
    """
    if not finished:
        return
    for queue, attempts in broker.attempts(worker, queues).items():
        # A job whose retry was reported may run again in the same worker: then its attempt is another one.
        unreported = [job for job in finished if job.job_id in attempts and job.attempt in (0, attempts[job.job_id])]
        settlement = Settlement()
        for job in unreported:
            _add(settlement, job, job.text or _lost_failure(job, worker))
        if not unreported:
            continue
        if counts is not None:
            of_queue = counts.pop(queue, None) or QueueCounts()
            _count(broker, queue, unreported, of_queue)
            settlement.metrics = list(of_queue.calls())
        broker.settle(worker, queue, settlement)
        logger.info("settled finished jobs of worker %s: %d", worker, len(unreported))
        for job in unreported:
            if job.verb == ACKED and is_result_lost(job.text):
                job_id = job.job_id.decode(errors="replace")
                extra = about_jobs([job_id], queue=queue)
                logger.warning("job %s succeeded, but its result is lost", job_id, extra=extra)


def _count(broker: Broker, queue: str, jobs: Sequence[Finished], counts: QueueCounts) -> None:
    for job, (_, task) in zip(jobs, broker.heads(queue, [job.job_id for job in jobs]), strict=True):
        for name in _COUNTED.get(job.verb, ()) if task else ():
            counts.tasks[task].outcomes[name] += 1


def _add(settlement: Settlement, job: Finished, text: bytes) -> None:
    if job.verb == ACKED:
        settlement.ack += (job.job_id, job.ms, job.text)
    elif job.verb == RETRIED:
        settlement.retry += (job.job_id, job.ms, int(job.is_counted), text, UNKNOWN_CLIENT)
    elif job.verb == BURIED:
        settlement.bury += (job.job_id, int(job.is_counted), text)
    elif job.verb == EXPIRED:
        settlement.expire += (job.job_id, job.ms, job.text)
    elif job.verb == CANCELLED:
        settlement.finish_cancel += (job.job_id, job.ms, job.text)


def _lost_failure(job: Finished, worker: str) -> bytes:
    """A failure without its error."""
    failure = Failure(
        at=time.time_ns() // 1_000_000,
        attempt=job.attempt,
        worker=worker,
        error="The error is lost: its text was too long to keep, and the process was killed before it reached Redis.",
    )
    return failure.line().encode()
