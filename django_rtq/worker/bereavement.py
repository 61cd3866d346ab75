"""What a dead child leaves behind: its jobs are taken back at once, or as soon as Redis answers (G5)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django_rtq import registry, signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.details import JobDetails
from django_rtq.broker.inspector import Inspector
from django_rtq.broker.settlement import Settlement
from django_rtq.broker.statistics import counter_name
from django_rtq.exceptions import BrokerError, JobNotFound, TaskNotFound, TimeLimitExceeded
from django_rtq.job import Job
from django_rtq.loop import Backoff
from django_rtq.worker.outcome import Buried, Retried, decide, error_line
from django_rtq.worker.page import Page

logger = logging.getLogger("django_rtq")


@dataclass(slots=True)
class _Estate:
    worker: str
    guilty: Sequence[str]  # were running: they count a crash
    overdue: Sequence[str]  # did not heed their time limit: they count a failure


class Bereavement:
    """Settles the estates of dead children. For the supervisor's main thread."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self._queues = queues
        self._inspector = Inspector(broker)
        self._estates: list[_Estate] = []
        self._backoff = Backoff()
        self._not_before = 0.0

    def add(self, page: Page, *, guilty: Sequence[str], overdue: Sequence[str] = ()) -> None:
        """A child is dead, and its page tells who it was."""
        if page.worker:
            self._estates.append(_Estate(page.worker, guilty, overdue))

    @property
    def is_pending(self) -> bool:
        """Whether something is left to settle, and there is hope to."""
        return bool(self._estates) and self._not_before == 0.0

    def settle(self) -> None:
        """Take back what can be taken back now. While Redis is away it tries again, not more often than is sensible."""
        if not self._estates or time.monotonic() < self._not_before:
            return
        try:
            while self._estates:
                self._settle(self._estates[0])
                del self._estates[0]
            self._not_before = 0.0
            self._backoff.reset()
        except BrokerError as error:
            if self._not_before == 0.0:
                logger.warning("jobs of a dead process are taken back when Redis answers: %s", error)
            self._not_before = time.monotonic() + self._backoff.next_seconds()

    def _settle(self, estate: _Estate) -> None:
        for job_id in estate.overdue:
            self._fail(estate.worker, job_id)
        for queue in self._queues:
            taken = self._broker.reclaim_child(queue, estate.worker, estate.guilty)
            if taken:
                signals.tell_reclaimed(Bereavement, queue, estate.worker, taken)

    def _fail(self, worker: str, job_id: str) -> None:
        """A job that had to be killed for its time limit has failed, like one that heeded it."""
        try:
            job = self._inspector.find_any(job_id, self._queues)
            task = registry.get_task(job.task)
        except (JobNotFound, TaskNotFound):
            return
        error = TimeLimitExceeded("The job ran longer than its time limit and did not heed it; its process was killed.")
        most = job.options.get("max_attempts") or task.max_attempts or self._broker.config.max_attempts
        outcome = decide(task, error, failures=job.failures, max_attempts=most)
        line = error_line(error, at_ms=time.time_ns() // 1_000_000, attempt=job.attempt, worker=worker)
        # The process that would have counted this run for its task was killed.
        ends = "retried" if isinstance(outcome, Retried) else "dead"
        settlement = Settlement(
            tally=[(2, counter_name("failed", job.task), 1, counter_name(ends, job.task), 1)],
        )
        if isinstance(outcome, Retried):
            settlement.retry = [job_id, int(outcome.delay_seconds * 1000), 1, line, job.client]
        else:
            settlement.bury = [job_id, 1, line]
        if not self._broker.settle(worker, job.queue, settlement):
            _tell(job, outcome)


def _tell(details: JobDetails, outcome: Retried | Buried) -> None:
    """Send the signal that the child would have sent."""
    job = Job(
        id=details.id,
        task=details.task,
        queue=details.queue,
        client=details.client,
        priority=details.priority,
        args=details.args,
        kwargs=details.kwargs,
        attempt=details.attempt,
        failures=details.failures,
        options=details.options,
    )
    if isinstance(outcome, Retried):
        signals.job_retried.send_robust(
            Bereavement, job=job, job_id=job.id, error=outcome.error, delay_seconds=outcome.delay_seconds
        )
    else:
        signals.job_buried.send_robust(Bereavement, job=job, job_id=job.id, error=outcome.error)
