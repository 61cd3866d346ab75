"""Soft time limits: an exception inside the job. Hard ones are the supervisor's: it kills the child."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from django_rtq.exceptions import TimeLimitExceeded


class MainThreadLimit:
    """Limits what runs in the main thread, by a timer of the system: it ends sleeps and most system calls."""

    def __init__(self) -> None:
        self._seconds = 0.0

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        """Raise TimeLimitExceeded inside the block after so many seconds."""
        if seconds is None:
            yield
            return
        self._seconds = seconds
        signal.signal(signal.SIGALRM, self._ring)  # each time: a job before may have had a use for it
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            self._seconds = 0.0
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, signum: int, frame: object) -> None:
        if self._seconds:
            raise TimeLimitExceeded(message(self._seconds))


class ThreadLimits:
    """Limits what runs in other threads: one watching thread plants the exception.

    It is seen at the next bytecode; a job inside a long C call is left to the hard limit.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: dict[int, float] = {}  # thread -> deadline; who takes it out decides: over, or too late
        self._planted: set[int] = set()  # threads that have, or had, an exception on its way
        self._watch: threading.Thread | None = None
        self._stopped = False

    @contextmanager
    def limit(self, seconds: float | None) -> Iterator[None]:
        """Raise TimeLimitExceeded inside the block after so many seconds."""
        if seconds is None:
            yield
            return
        thread = threading.get_ident()
        with self._changed:
            if self._watch is None:
                self._watch = threading.Thread(target=self._run, name="rtq-limits", daemon=True)
                self._watch.start()
            self._deadlines[thread] = time.monotonic() + seconds
            self._changed.notify()
        try:
            try:
                yield
            finally:
                self._disarm(thread)
        except _Planted:
            raise TimeLimitExceeded(message(seconds)) from None

    def stop(self) -> None:
        """Let the watching thread end."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _disarm(self, thread: int) -> None:
        # Without a lock: an exception that is on its way may come at any bytecode, and would leave it locked.
        if self._deadlines.pop(thread, None) is None:
            while thread not in self._planted:
                time.sleep(0.0005)
            for _ in range(5):  # if it has not come yet, it comes here, and not to whatever runs in this thread next
                time.sleep(0)
            self._planted.discard(thread)

    def _run(self) -> None:
        with self._changed:
            while not self._stopped:
                now = time.monotonic()
                for thread, deadline in list(self._deadlines.items()):
                    if deadline <= now and self._deadlines.pop(thread, None) is not None:
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Planted))
                        self._planted.add(thread)
                nearest = min(list(self._deadlines.values()), default=now + 60)
                self._changed.wait(max(0.0, nearest - now))


class _Planted(TimeLimitExceeded):
    """Planted without arguments: the interpreter makes the instance."""


async def limited(coroutine: Coroutine[Any, Any, Any], seconds: float | None) -> Any:
    """Await a coroutine; after so many seconds it is cancelled and TimeLimitExceeded raised."""
    if seconds is None:
        return await coroutine
    running = asyncio.ensure_future(coroutine)
    done, _ = await asyncio.wait({running}, timeout=seconds)
    if not done:
        running.cancel()
        await asyncio.wait({running})
        raise TimeLimitExceeded(message(seconds))
    return running.result()


def message(seconds: float) -> str:
    """What a job that ran too long is told."""
    return f"The job ran longer than its time limit of {seconds:g} s."
