"""How a job is interrupted that runs too long, or is to stop: by an exception inside it.

A run is interrupted once at most, so that a job which tidies up is left in peace. Whoever does not heed it is the
supervisor's: it kills the child.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import queue
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django_rtq.exceptions import JobCancelled, TimeLimitExceeded


class MainThreadInterrupts:
    """Interrupts what runs in the main thread, in a signal handler: that ends sleeps and most system calls."""

    def __init__(self) -> None:
        self._job_id = b""  # who runs and may be interrupted; only then a handler raises
        self._seconds = 0.0

    def limit(self, seconds: float | None, job_id: bytes = b"") -> MainThreadInterrupts:
        """Raise TimeLimitExceeded inside the block after so many seconds, and JobCancelled at stop()."""
        self._job_id = job_id
        if seconds is not None:
            self._seconds = seconds
            signal.signal(signal.SIGALRM, self._on_alarm)  # each time: a job before may have had a use for it
            signal.setitimer(signal.ITIMER_REAL, seconds)
        return self

    def __enter__(self) -> None:
        """The block begins; it is guarded already."""

    def __exit__(self, *error: object) -> None:
        self._job_id = b""
        if self._seconds:
            self._disarm()

    def stop(self, job_id: bytes) -> None:
        """Raise JobCancelled if that job is what runs here. For a signal handler."""
        if job_id and job_id == self._job_id:
            self._disarm()
            raise JobCancelled

    def _on_alarm(self, signum: int, frame: object) -> None:
        seconds = self._seconds
        if seconds:
            self._disarm()
            raise TimeLimitExceeded(message(seconds))

    def _disarm(self) -> None:
        # A handler does it all before it raises: what it raises may come at the very end of the block, or in here.
        self._job_id = b""
        if self._seconds:
            self._seconds = 0.0
            signal.setitimer(signal.ITIMER_REAL, 0)


class ThreadInterrupts:
    """Interrupts what runs in other threads: one watching thread plants the exception.

    It is seen at the next bytecode; a job inside a long C call is left to the supervisor.
    """

    def __init__(self) -> None:
        self._runs: dict[_Run, None] = {}  # who takes a run out decides: it is over, or interrupted
        self._requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()  # a job to cancel; b"": a new deadline
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._stopped = False

    @contextmanager
    def limit(self, seconds: float | None, job_id: bytes = b"") -> Iterator[None]:
        """Raise TimeLimitExceeded inside the block after so many seconds, and JobCancelled at stop()."""
        with self._lock:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch_runs, name="rtq-limits", daemon=True)
                self._watcher.start()
        run = _Run(threading.get_ident(), job_id, math.inf if seconds is None else time.monotonic() + seconds)
        self._runs[run] = None
        try:
            try:
                if seconds is not None:
                    self._requests.put(b"")
                yield
            finally:
                self._disarm(run)
        except _ThreadTimeLimit:
            raise TimeLimitExceeded(message(seconds or 0.0)) from None

    def stop(self, job_id: bytes) -> None:
        """Have JobCancelled raised in that job, if it runs here. May be called in a signal handler."""
        self._requests.put(job_id)

    def close(self) -> None:
        """Let the watching thread end."""
        self._stopped = True
        self._requests.put(b"")
        if self._watcher is not None:
            self._watcher.join(timeout=5)

    def _disarm(self, run: _Run) -> None:
        # Without a lock: an exception that is on its way may come at any bytecode, and would leave it locked.
        if self._runs.pop(run, run) is run:
            while not run.is_interrupted:
                time.sleep(0.0005)
            for _ in range(5):  # if it has not come yet, it comes here, and not to whatever runs in this thread next
                time.sleep(0)

    def _watch_runs(self) -> None:
        while not self._stopped:
            now = time.monotonic()
            for run in list(self._runs):
                if run.deadline <= now:
                    self._interrupt(run, _ThreadTimeLimit)
            nearest = min((run.deadline for run in list(self._runs)), default=math.inf)
            with suppress(queue.Empty):
                job_id = self._requests.get(timeout=None if nearest == math.inf else max(0.0, nearest - now))
                for run in list(self._runs) if job_id else ():
                    if run.job_id == job_id:
                        self._interrupt(run, JobCancelled)

    def _interrupt(self, run: _Run, error: type[BaseException]) -> None:
        if self._runs.pop(run, run) is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(run.thread), ctypes.py_object(error))
            run.is_interrupted = True


class _Run:
    """What runs in a thread."""

    __slots__ = ("deadline", "is_interrupted", "job_id", "thread")

    def __init__(self, thread: int, job_id: bytes, deadline: float) -> None:
        self.thread = thread
        self.job_id = job_id
        self.deadline = deadline
        self.is_interrupted = False  # it has, or had, an exception on its way


class _ThreadTimeLimit(TimeLimitExceeded):
    """Planted without arguments: the interpreter makes the instance."""


class CoroutineInterrupts:
    """The coroutines that run on one event loop, so that they can be cancelled. For its thread."""

    def __init__(self) -> None:
        self._tasks: dict[bytes, asyncio.Future[Any]] = {}

    async def limited(self, coroutine: Coroutine[Any, Any, Any], seconds: float | None, job_id: bytes = b"") -> Any:
        """Await a coroutine; after so many seconds it is cancelled and TimeLimitExceeded raised."""
        current = asyncio.current_task()
        assert current is not None
        running = current if seconds is None else asyncio.ensure_future(coroutine)
        self._tasks[job_id] = running
        try:
            if seconds is None:
                return await coroutine
            done, _ = await asyncio.wait({running}, timeout=seconds)
            if not done:
                running.cancel()
                await asyncio.wait({running})
                raise TimeLimitExceeded(message(seconds))
            return running.result()
        finally:
            # What comes after it must not be cancelled in its stead.
            self._tasks.pop(job_id, None)

    def stop(self, job_id: bytes) -> None:
        """Cancel the coroutine of that job, if it runs here; once."""
        running = self._tasks.pop(job_id, None)
        if running is not None:
            running.cancel()


def message(seconds: float) -> str:
    """What a job that ran too long is told."""
    return f"The job ran longer than its time limit of {seconds:g} s."
