"""Things that run for ever, each in a thread of its own, one tick after the other."""

from __future__ import annotations

import logging
import random
import threading
import time

from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.05, 5.0
_STOP_SECONDS = 5.0
_jitter = random.SystemRandom()


class Backoff:
    """Waits that grow while Redis is away, with jitter, so that a fleet does not come back in step."""

    def __init__(self, longest_seconds: float = _LONGEST_BACKOFF) -> None:
        self._longest_seconds = longest_seconds
        self._failures = 0

    def next_seconds(self) -> float:
        """How long to wait after one more failure."""
        self._failures = min(self._failures + 1, 10)
        return min(self._longest_seconds, _SHORTEST_BACKOFF * 2.0**self._failures) * _jitter.uniform(0.5, 1.0)

    def reset(self) -> bool:
        """It works again. Answers whether it had failed."""
        had_failed, self._failures = self._failures > 0, 0
        return had_failed


class Loop:
    """A thread that calls tick() until it is stopped. Subclasses say their name and what a tick does.

    start() once; stop() as often as one likes, also before start().
    """

    name = "loop"

    def __init__(self, *, longest_backoff_seconds: float = _LONGEST_BACKOFF) -> None:
        #: Held during a tick: who forks takes it first, so that no child inherits a half-done one.
        self.busy = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._backoff = Backoff(longest_backoff_seconds)

    def tick(self) -> float:
        """Do what is due. Returns the seconds until the next tick."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Let time pass, or end early when there is something to do."""
        self._stopped.wait(seconds)

    def interrupt(self) -> None:
        """End a wait."""

    def start(self) -> None:
        """Begin to tick in a thread named rtq-<name>."""
        self._thread = threading.Thread(target=self._run, name=f"rtq-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the tick that runs end, then no more. Waits for it, but not for ever."""
        self._stopped.set()
        until = time.monotonic() + _STOP_SECONDS
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < until:
            self.interrupt()  # again and again: it may have been about to wait
            self._thread.join(timeout=0.1)
        self.interrupt()  # what it waited on is left to nobody

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with self.busy:
                    seconds = self.tick()
                if self._backoff.reset():
                    logger.info("%s goes on: Redis is back", self.name)
                self.wait(seconds)
            except BrokerError as error:
                if self._stopped.is_set():
                    return
                seconds = self._backoff.next_seconds()
                if seconds <= 2 * _SHORTEST_BACKOFF:
                    logger.warning("%s waits for Redis: %s", self.name, error)
                self._stopped.wait(seconds)
            except Exception:
                if self._stopped.is_set():
                    return  # what it waited on was taken away, so that it stops
                logger.exception("%s failed; it goes on", self.name)
                self._stopped.wait(self._backoff.next_seconds())
