"""How many processes the supervisor still has to fork, and when it may fork the next one."""

from __future__ import annotations

import time

from django_rtq.loop import ReconnectDelay

MAX_FAILED_STARTS = 10  # processes in a row that died before they claimed jobs
MAX_PAUSE_SECONDS = 5.0
MAX_TICK_WAIT_SECONDS = 2.0  # how long a fork waits for running ticks, which may hold locks


class ForkSchedule:
    """Counts missing processes, and delays forks after failures. For the supervisor's main thread."""

    def __init__(self, count: int) -> None:
        self.pending = count  # processes to fork
        self._not_before = 0.0
        self._failed_starts = 0  # in a row
        self._counted_failures = 0  # of these, the ones that happened while Redis was reachable
        self._failed_start_at = 0.0
        self._backoff = ReconnectDelay(MAX_PAUSE_SECONDS)
        self._waiting_since: float | None = None

    def add(self) -> None:
        """Schedule one more fork."""
        self.pending += 1

    def clear(self) -> None:
        """Fork no more processes."""
        self.pending = 0

    @property
    def is_due(self) -> bool:
        """Whether a process may be forked now."""
        return self.pending > 0 and time.monotonic() >= self._not_before

    def on_crash(self, *, has_claimed: bool, redis_answered_at: float) -> None:
        """A process has died. `has_claimed`: it had a reply to a claim. `redis_answered_at`: the last reply to us.

        A failed start (nothing claimed) delays all forks. It counts only if Redis has replied since the failed start
        before it: while Redis is unreachable no process can claim jobs.
        """
        if has_claimed:
            self._failed_starts = self._counted_failures = 0
            return
        self._failed_starts += 1
        self._counted_failures += redis_answered_at > self._failed_start_at
        self._failed_start_at = time.monotonic()
        self._delay_forks(0.1 * 2.0 ** min(self._failed_starts, 10))

    @property
    def should_give_up(self) -> bool:
        """Whether too many starts have failed in a row."""
        return self._counted_failures >= MAX_FAILED_STARTS

    def on_forked(self) -> None:
        """A process was forked."""
        self.pending -= 1
        self._waiting_since = None
        self._backoff.reset()

    def on_fork_failed(self) -> None:
        """The system refused the fork."""
        self._delay_forks(self._backoff.next_seconds())

    def waited_long_enough(self) -> bool:
        """Whether a fork has waited long enough for a running tick, which may hold a lock."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        return now - self._waiting_since >= MAX_TICK_WAIT_SECONDS

    def _delay_forks(self, seconds: float) -> None:
        self._not_before = max(self._not_before, time.monotonic() + min(seconds, MAX_PAUSE_SECONDS))
