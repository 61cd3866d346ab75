"""Which processes the supervisor still has to fork, and when.

A process that has run jobs is replaced at once, however it crashed: its jobs are slowed down instead (see
CrashingClients). So is one that has lived long. Processes that crash soon after their start and have run nothing
would crash in a loop: after some in a row for the same reason, each pause before a replacement is twice as long as the
last one. Other processes are replaced meanwhile. If no process gets as far as a claim, all forks wait, and after some
tries the supervisor gives up.
"""

from __future__ import annotations

import math
import time
from bisect import insort

from django_rtq.core.threads import ReconnectDelay

MAX_FAILED_STARTS = 10  # processes in a row that died before they claimed jobs
MAX_PAUSE_SECONDS = 5.0
MAX_TICK_WAIT_SECONDS = 2.0  # how long a fork waits for running ticks, which may hold locks

HEALTHY_SECONDS = 10.0  # a process that crashes after a longer life is replaced at once
CRASHES_WITHOUT_PAUSE = 3  # in a row, early, and before a job
FIRST_CRASH_PAUSE_SECONDS = 0.1


class ForkSchedule:
    """The times of forks that are still to be made. For the supervisor's main thread."""

    def __init__(self, count: int) -> None:
        self._due = [0.0] * count  # time.monotonic() of each fork, the earliest first
        self._not_before = 0.0
        self._failed_starts = 0  # in a row
        self._counted_failures = 0  # of these, the ones that happened while Redis was reachable
        self._failed_start_at = 0.0
        #: By reason: how many early crashes in a row, and the time.monotonic() after which one begins a new row.
        self._early_crashes: dict[str, tuple[int, float]] = {}
        self._loop = "", 0.0  # why processes crash, and until when that is true
        self._backoff = ReconnectDelay(MAX_PAUSE_SECONDS)
        self._waiting_since: float | None = None

    def add(self, pause_seconds: float = 0.0) -> None:
        """Schedule one more fork."""
        insort(self._due, time.monotonic() + pause_seconds)

    def clear(self) -> None:
        """Fork no more processes."""
        self._due.clear()

    @property
    def pending(self) -> int:
        """How many processes are to be forked."""
        return len(self._due)

    @property
    def seconds(self) -> float:
        """How long until the next fork is due; infinity: there is none."""
        return max(0.0, max(self._due[0], self._not_before) - time.monotonic()) if self._due else math.inf

    @property
    def is_due(self) -> bool:
        """Whether a process may be forked now."""
        return self.seconds <= 0

    def on_crash(
        self, reason: str, *, lived_seconds: float, has_claimed: bool, has_run: bool, redis_answered_at: float
    ) -> None:
        """Schedule the replacement of a process that crashed, such as "exited with code 70".

        `has_claimed`: it had a reply to a claim; `has_run`: it had started a job. `redis_answered_at`: the last reply
        to the supervisor.
        """
        if not has_claimed and not has_run:
            # It died before it claimed anything: that delays all forks. It counts only if Redis has replied since the
            # failed start before it: while Redis is unreachable no process can claim jobs.
            self._failed_starts += 1
            self._counted_failures += redis_answered_at > self._failed_start_at
            self._failed_start_at = time.monotonic()
            self._delay_forks(0.1 * 2.0 ** min(self._failed_starts, 10))
            self.add()
            if self._failed_starts >= CRASHES_WITHOUT_PAUSE:
                self._loop = reason, self._not_before + HEALTHY_SECONDS
            return
        self._failed_starts = self._counted_failures = 0
        if has_run or lived_seconds >= HEALTHY_SECONDS:
            self.add()
            return
        now = time.monotonic()
        crashes, forget_at = self._early_crashes.get(reason, (0, math.inf))
        crashes = 1 if now >= forget_at else crashes + 1
        doublings = crashes - CRASHES_WITHOUT_PAUSE - 1
        pause = min(FIRST_CRASH_PAUSE_SECONDS * 2.0 ** min(doublings, 20), MAX_PAUSE_SECONDS) if doublings >= 0 else 0.0
        self._early_crashes[reason] = crashes, now + pause + HEALTHY_SECONDS
        self.add(pause)
        if pause:
            self._loop = reason, now + pause + HEALTHY_SECONDS

    @property
    def crash_loop(self) -> str:
        """How processes crash again and again before they run a job; "": they do not."""
        reason, until = self._loop
        return reason if time.monotonic() < until else ""

    @property
    def should_give_up(self) -> bool:
        """Whether too many starts have failed in a row."""
        return self._counted_failures >= MAX_FAILED_STARTS

    def on_forked(self) -> None:
        """A process was forked."""
        self._due.pop(0)
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
