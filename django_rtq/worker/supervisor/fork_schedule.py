"""How many processes a supervisor has yet to fork, and how long each fork has to wait."""

from __future__ import annotations

import time

from django_rtq.loop import ReconnectDelay

MOST_FALSE_STARTS = 10  # processes in a row that died before they asked for work
LONGEST_PAUSE_SECONDS = 5.0
PATIENCE_SECONDS = 2.0  # so long a fork waits for ticks that run, which may hold locks


class ForkSchedule:
    """Places for processes that nobody has. For the supervisor's main thread."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._not_before = 0.0
        self._false_starts = 0  # in a row
        self._own_fault = 0  # of these, the ones that Redis has nothing to do with
        self._false_start_at = 0.0
        self._backoff = ReconnectDelay(LONGEST_PAUSE_SECONDS)
        self._waits_since: float | None = None

    def open(self) -> None:
        """One more is to be forked."""
        self.count += 1

    def close(self) -> None:
        """None is to be forked any more."""
        self.count = 0

    @property
    def are_due(self) -> bool:
        """Whether one may be forked now."""
        return self.count > 0 and time.monotonic() >= self._not_before

    def note_death(self, *, has_worked: bool, answered_at: float) -> None:
        """A process has died that had (not) asked for work. `answered_at`: when Redis has last answered us.

        A false start puts off all forks. It counts when Redis has answered since the false start before it: while
        Redis is away no process can ask for work.
        """
        if has_worked:
            self._false_starts = self._own_fault = 0
            return
        self._false_starts += 1
        self._own_fault += answered_at > self._false_start_at
        self._false_start_at = time.monotonic()
        self._put_off(0.1 * 2.0 ** min(self._false_starts, 10))

    @property
    def are_hopeless(self) -> bool:
        """Whether there is no sense in forking once more."""
        return self._own_fault >= MOST_FALSE_STARTS

    def filled(self) -> None:
        """One was forked."""
        self.count -= 1
        self._waits_since = None
        self._backoff.reset()

    def refused(self) -> None:
        """The system did not let us fork."""
        self._put_off(self._backoff.next_seconds())

    def has_waited(self) -> bool:
        """A tick runs that may hold a lock. Whether a fork has waited long enough for it to end."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        return now - self._waits_since >= PATIENCE_SECONDS

    def _put_off(self, seconds: float) -> None:
        self._not_before = max(self._not_before, time.monotonic() + min(seconds, LONGEST_PAUSE_SECONDS))
