"""What a dead child leaves behind: its jobs are taken back at once, or as soon as Redis answers (G5).

1. the main thread of the supervisor reaps a child, and hands over what it left
2. this loop takes its jobs back, in a thread of its own: the main thread never waits for Redis
3. it sends the signals of these jobs, when all that was handed over is taken back
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.histogram import counter_name
from django_rtq.broker.settlement import Settlement
from django_rtq.exceptions import BrokerError, PayloadError, TaskNotFound, TimeLimitExceeded
from django_rtq.loop import Loop
from django_rtq.tasks import registry
from django_rtq.worker.outcome import Retried, decide, error_line, send_failed
from django_rtq.worker.shared_entries import Finished
from django_rtq.worker.shared_memory import SharedState
from django_rtq.worker.supervisor.finished_jobs import tell_finished

logger = logging.getLogger("django_rtq")

LONGEST_WAIT_SECONDS = 60.0
HOPE_SECONDS = 2.0  # a round trip takes milliseconds: who waits longer for one has a Redis that hangs
Tell = Callable[[], None]


@dataclass(slots=True)
class _CrashedProcess:
    worker: str
    guilty: Sequence[str]  # were running: they count a crash
    overdue: Sequence[str]  # did not heed their time limit: they count a failure
    finished: Sequence[Finished]  # were over; Redis may not know it


class CrashRecovery(Loop):
    """Takes back the jobs of dead children, in its own thread. The main thread calls `add` and `is_pending`."""

    name = "reclaim"

    def __init__(self, broker: Broker, queues: Sequence[str], wake: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._broker = broker
        self._queues = queues
        self._wake = wake
        self._estates: deque[_CrashedProcess] = deque()
        self._moved_at = 0.0  # when the first of them came, or Redis has answered since
        self._is_refused = False  # the last try found Redis away

    def add(self, page: SharedState, *, guilty: Sequence[str], overdue: Sequence[str] = ()) -> None:
        """A child is dead, and its page tells who it was."""
        if page.worker:
            if not self._estates:
                self._moved_at = time.monotonic()
            self._estates.append(_CrashedProcess(page.worker, guilty, overdue, page.finished()))
            self.interrupt()

    @property
    def is_pending(self) -> bool:
        """Whether something is left to take back, and Redis seems to be there."""
        return bool(self._estates) and not self._is_refused and time.monotonic() - self._moved_at < HOPE_SECONDS

    def tick(self) -> float:
        """Take back all that can be taken back now."""
        tell: list[Tell] = []
        try:
            while self._estates:
                self._settle(self._estates[0], tell)
                self._estates.popleft()
            self._is_refused = False
        except BrokerError as error:
            if not self._is_refused:
                logger.warning("jobs of a dead process are taken back when Redis answers: %s", error)
            self._is_refused = True
            raise
        finally:
            self._wake()
            for each in tell:
                each()
        return LONGEST_WAIT_SECONDS

    def _settle(self, estate: _CrashedProcess, tell: list[Tell]) -> None:
        tell_finished(self._broker, self._queues, estate.worker, estate.finished)
        self._moved_at = time.monotonic()
        for job_id in estate.overdue:
            try:
                self._fail(estate.worker, job_id, tell)
            except BrokerError:
                raise
            except Exception:  # of the task's `backoff`, say: no other job may have to wait for this one
                logger.exception("job %s: what follows from its time limit is not known; it counts a crash", job_id)
                estate.guilty = [*{*estate.guilty, job_id}]
            self._moved_at = time.monotonic()
        for queue in self._queues:
            taken = self._broker.reclaim_child(queue, estate.worker, estate.guilty)
            self._moved_at = time.monotonic()
            if taken:
                tell.append(partial(signals.send_reclaimed, CrashRecovery, queue, estate.worker, taken))

    def _fail(self, worker: str, job_id: str, tell: list[Tell]) -> None:
        """A job that had to be killed for its time limit has failed, like one that heeded it."""
        try:
            job = self._broker.find_running(worker, self._queues, job_id)
            task = registry.get_task(job.task) if job else None
        except (PayloadError, ValueError, TaskNotFound):
            return
        if job is None or task is None:
            return
        error = TimeLimitExceeded("The job ran longer than its time limit and did not heed it; its process was killed.")
        most = job.options.get("max_attempts") or task.max_attempts or self._broker.config.max_attempts
        outcome = decide(task, error, failures=job.failures, max_attempts=most)
        line = error_line(error, at_ms=time.time_ns() // 1_000_000, attempt=job.attempt, worker=worker)
        # The process that would have counted this run for its task was killed.
        ends = "retried" if isinstance(outcome, Retried) else "dead"
        settlement = Settlement(
            metrics=[(2, counter_name("failed", job.task), 1, counter_name(ends, job.task), 1)],
        )
        if isinstance(outcome, Retried):
            settlement.retry = [job_id, int(outcome.delay_seconds * 1000), 1, line, job.client]
        else:
            settlement.bury = [job_id, 1, line]
        if not self._broker.settle(worker, job.queue, settlement):
            tell.append(partial(send_failed, CrashRecovery, job, job.id, outcome))
