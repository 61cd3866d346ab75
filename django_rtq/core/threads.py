"""Background threads that repeat one step, a tick, and what they need: delays, a semaphore, database connections."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from django.db import connections

from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable

logger = logging.getLogger("django_rtq")

_MIN_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.05, 5.0
STOP_SECONDS = 5.0  # how long a stop waits for running ticks
URGENT_STOP_SECONDS = 0.1  # when a tick hangs, most likely because Redis does not answer
HANGING_SECONDS = 1.0  # a tick that takes longer than this hangs
_jitter = random.SystemRandom()


def close_database_connections() -> None:
    """Close all connections of this thread. Raises nothing."""
    for connection in connections.all(initialized_only=True):
        try:
            connection.close()
        except Exception:
            logger.exception("the connection to database %r could not be closed; it is dropped", connection.alias)
        # Make a new one next time: this one may still be marked as in a transaction.
        with suppress(AttributeError):
            del connections[connection.alias]


def close_connection_pools() -> None:
    """Close the connection pools of this process before a fork, because two processes must not share their sockets."""
    for alias, settings in connections.settings.items():
        if settings.get("OPTIONS", {}).get("pool"):
            try:
                connections[alias].close_pool()  # type: ignore[attr-defined]
            except Exception:
                logger.exception("the connection pool of database %r could not be closed", alias)


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


def log_trouble(who: str, error: BrokerError, then: str = "retrying") -> None:
    """Log that Redis cannot be reached, or has refused a command, which waiting may not fix."""
    if isinstance(error, BrokerUnavailable) and not isinstance(error, BrokerRefused):
        logger.warning("%s cannot reach Redis, %s: %s", who, then, error)
    else:
        logger.error("%s was refused by Redis, %s: %s", who, then, error)


class ReconnectDelay:
    """Exponential backoff with jitter, so that many workers do not reconnect to Redis at the same moment."""

    def __init__(self, max_seconds: float = _MAX_DELAY_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._failures = 0

    def next_seconds(self) -> float:
        """Count a failure. Returns how long to wait."""
        self._failures = min(self._failures + 1, 10)
        return min(self._max_seconds, _MIN_DELAY_SECONDS * 2.0**self._failures) * _jitter.uniform(0.5, 1.0)

    def reset(self) -> bool:
        """Forget all failures. Returns whether there were any."""
        had_failed, self._failures = self._failures > 0, 0
        return had_failed


class Loop:
    """A thread that calls tick() until it is stopped. Subclasses define their name and tick().

    Call start() once. stop() may be called any number of times, also before start().
    """

    name = "loop"

    def __init__(self, *, max_delay_seconds: float = _MAX_DELAY_SECONDS) -> None:
        #: Held during a tick; see pause_loops().
        self.tick_lock = threading.Lock()
        #: Held by pause_loops() while it waits for `tick_lock`, so that no other tick begins.
        self.start_lock = threading.Lock()
        #: time.monotonic() at the end of the last tick that succeeded; 0: none yet.
        self.last_success_at = 0.0
        self._stopped = threading.Event()
        self._wake_event = threading.Event()
        self._thread: threading.Thread | None = None
        self._delay = ReconnectDelay(max_delay_seconds)
        self._tick_started_at: float | None = None

    def tick(self) -> float:
        """Do one step. Returns the seconds until the next tick."""
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        """Wait for the next tick. interrupt() ends it early."""
        self._wake_event.wait(seconds)

    def interrupt(self) -> None:
        """End a wait, so that the next tick begins at once. Any thread may call it."""
        self._wake_event.set()

    def close(self) -> None:
        """Close what ticks and waits have opened. Called in the thread, at its end."""

    def start(self) -> None:
        """Start the thread, named rtq-<name>."""
        self._thread = threading.Thread(target=self._run, name=f"rtq-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the running tick. Waits for it up to a limit; see stop_all()."""
        stop_all([self])

    def request_stop(self) -> None:
        """Start no more ticks. Does not wait for the running one."""
        self._stopped.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end of the thread, at most `seconds`. Returns whether it has ended."""
        if self._thread is not None and self._thread.is_alive():
            self.interrupt()  # again and again: it may have been about to wait
            self._thread.join(timeout=seconds)
        return self._thread is None or not self._thread.is_alive()

    @property
    def is_hanging(self) -> bool:
        """Whether the running tick takes much longer than usual."""
        since = self._tick_started_at
        return since is not None and time.monotonic() - since > HANGING_SECONDS

    def _run(self) -> None:
        try:
            self._run_ticks()
        finally:
            self.close()

    def _run_ticks(self) -> None:
        while not self._stopped.is_set():
            self._wake_event.clear()  # before the tick, because an interrupt during it may have come too late for it
            try:
                seconds = self._tick()
                if self._delay.reset():
                    logger.info("%s reached Redis again", self.name)
                self.wait(seconds)
            except BrokerError as error:
                if self._stopped.is_set():
                    return
                seconds = self._delay.next_seconds()
                if seconds <= 2 * _MIN_DELAY_SECONDS:
                    log_trouble(self.name, error)
                self._stopped.wait(seconds)
            except Exception:
                if self._stopped.is_set():
                    return  # its connection was closed to stop it
                logger.exception("%s failed, continuing", self.name)
                self._stopped.wait(self._delay.next_seconds())

    def _tick(self) -> float:
        with self.start_lock:
            pass
        with self.tick_lock:
            self._tick_started_at = time.monotonic()
            try:
                seconds = self.tick()
                self.last_success_at = time.monotonic()
            finally:
                # Database connections that signal receivers or functions of the project have opened: the database may
                # be restarted, or this process may fork, before the next tick.
                close_database_connections()
                self._tick_started_at = None
        return seconds


def stop_all(loops: Sequence[Loop], *, is_urgent: bool = False) -> None:
    """Stop loops together, with one deadline. Threads that need longer end with the process."""
    for loop in loops:
        loop.request_stop()
    is_urgent = is_urgent or any(loop.is_hanging for loop in loops)
    until = time.monotonic() + (URGENT_STOP_SECONDS if is_urgent else STOP_SECONDS)
    while (alive := [loop for loop in loops if not loop.join(0.0)]) and time.monotonic() < until:
        alive[0].join(0.05)
    for loop in loops:
        loop.interrupt()  # so that no wait outlives the loop


@contextmanager
def pause_loops(loops: Sequence[Loop], *, seconds: float) -> Iterator[bool]:
    """Start no ticks inside this block. Yields whether no tick is running either, after waiting `seconds` at most."""
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        for loop in loops:
            stack.enter_context(loop.start_lock)
        are_all = True
        for loop in loops:
            if loop.tick_lock.acquire(timeout=max(0.0, until - time.monotonic())):
                stack.callback(loop.tick_lock.release)
            else:
                are_all = False
        yield are_all
