"""The scheduler: queues due jobs, fires schedules, and deletes expired outcomes. Any number of them may run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.scheduler.dispatcher import Dispatcher
from django_rtq.tasks import registry
from django_rtq.threads.loop import Loop

logger = logging.getLogger("django_rtq")

MAX_CALLS = 4  # of promote, for 100 jobs each, in one round trip: Redis serves nobody else meanwhile
CHECK_SECONDS = 2.0  # how often wait() checks whether a thread of this process has noticed changed schedules
CLEANUP_SECONDS = 3600.0  # how often it searches for unused queues
RESTART_CHECK_SECONDS = 60.0  # how often it looks whether Redis was restarted
MAX_WAIT_SECONDS = 60.0  # if a wake-up signal gets lost, heartbeats promote due jobs as well


class Scheduler(Loop):
    """Promotes due jobs of some queues. Sleeps until the next job is due; an earlier one wakes it (G7)."""

    name = "scheduler"

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        super().__init__()
        self._broker = broker
        self._queues = list(queues)
        self._dispatcher = Dispatcher(broker, queues)
        self._calls = 1
        self._next_task_hours = 0.0  # time.monotonic() when another hour of the counters of tasks is over
        self._next_cleanup = 0.0  # time.monotonic() of the next search for unused queues
        self._next_restart_check = 0.0  # time.monotonic()
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.of(queue).due_signal for queue in queues],
            role="scheduler",
        )

    def tick(self) -> float:
        """Promote, trim and fire, a bounded number of jobs for each queue."""
        seconds, promoted, is_trimmed = self._broker.maintenance.run(self._queues, promote_calls=self._calls)
        signals.send_promoted(Scheduler, promoted)
        # If many jobs are due, the next round trip promotes several batches.
        self._calls = MAX_CALLS if seconds == 0.0 else 1
        # Last, because a Redis server without memory rejects new jobs, but not the rest.
        until_slot = self._dispatcher.fire_due()
        if time.monotonic() >= self._next_task_hours:
            until_hour = self._broker.maintenance.task_days.store(self._queues)
            self._next_task_hours = time.monotonic() + until_hour
        if time.monotonic() >= self._next_restart_check:
            self._rewrite_log()
        if seconds == 0.0 or not is_trimmed:
            return 0.0
        if time.monotonic() >= self._next_cleanup:
            self._forget_unused_queues()
        return min(wait for wait in (seconds, until_slot, MAX_WAIT_SECONDS) if wait is not None)

    def _rewrite_log(self) -> None:
        answer = self._broker.maintenance.rewrite_log_after_restart()
        self._next_restart_check = time.monotonic() + (math.inf if answer == "unknown" else RESTART_CHECK_SECONDS)
        if answer == "rewritten":
            logger.info("Redis was restarted: it rewrites its append-only file, in case that had been cut off")
        elif answer == "refused":
            logger.warning(
                "Redis was restarted, and refuses BGREWRITEAOF to this user. If the log of Redis says "
                '"Truncating the AOF", run BGREWRITEAOF by hand: its next start may misplace jobs otherwise'
            )

    def _forget_unused_queues(self) -> None:
        self._next_cleanup = time.monotonic() + CLEANUP_SECONDS
        used = {*self._queues, *registry.declared_queues(self._broker.backend)}
        for name in self._broker.maintenance.forget_unused(used):
            logger.info("queue %s is forgotten: it is empty, not declared, and had no worker for a day", name)

    def wait(self, seconds: float) -> None:
        """Wait until the next job is due, an earlier one is scheduled, or schedules were changed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._dispatcher.is_outdated:
            is_last = left < CHECK_SECONDS + 0.1
            if self._reader.wait(left if is_last else CHECK_SECONDS, is_exact=is_last):
                return

    def interrupt(self) -> None:
        """End the blocking read, and with it the thread."""
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.close()
