"""A binary semaphore: one thread waits until another one, or a signal handler, releases it."""

from __future__ import annotations

import threading


class BinarySemaphore:
    """Not acquirable until it is released. Releases before it is acquired count as one.

    A lock does it: release() may be called in a signal handler, and costs less than a Condition. A SimpleQueue costs as
    little, but its get() hangs in Python before 3.13 if a signal comes at the end of its timeout.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def release(self) -> None:
        """Let one acquire() succeed: the one that waits, or else the next one."""
        try:  # noqa: SIM105 - suppress() takes 0.8 µs longer
            self._lock.release()
        except RuntimeError:  # it was released before
            pass

    def acquire(self, seconds: float | None = None) -> bool:
        """Wait for a release, at most `seconds`. Returns whether there was one."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)
