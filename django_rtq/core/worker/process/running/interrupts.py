"""Time limits and cancellation of running jobs, by an exception inside the job.

A run is interrupted at most once, so that its cleanup is not interrupted again. If a job ignores the exception, the
supervisor kills the process.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from django_rtq.core.threads import BinarySemaphore
from django_rtq.exceptions import JobCancelled, TimeLimitExceeded


class MainThreadInterrupts:
    """Interrupts the job in the main thread, from a signal handler: ends sleeps and most system calls."""

    def __init__(self) -> None:
        self._job_id = b""  # the running job, while it may be interrupted
        self._seconds = 0.0

    def limit(self, seconds: float | None, job_id: bytes = b"") -> MainThreadInterrupts:
        """Raise TimeLimitExceeded inside the block after so many seconds, and JobCancelled at stop()."""
        self._job_id = job_id
        if seconds is not None:
            self._seconds = seconds
            signal.signal(signal.SIGALRM, self._on_alarm)  # each time: an earlier job may have replaced it
            signal.setitimer(signal.ITIMER_REAL, seconds)
        return self

    def __enter__(self) -> MainThreadInterrupts:
        """limit() has started it."""
        return self

    def __exit__(self, *error: object) -> None:
        self._job_id = b""
        if self._seconds:
            self._disarm()

    def end(self) -> None:
        """Do not interrupt the run any more, though its block continues."""
        self.__exit__()

    def cancel(self, job_id: bytes) -> None:
        """Raise JobCancelled if that job is running. For a signal handler."""
        if job_id and job_id == self._job_id:
            self._disarm()
            raise JobCancelled

    def _on_alarm(self, signum: int, frame: object) -> None:
        seconds = self._seconds
        if seconds:
            self._disarm()
            raise TimeLimitExceeded(limit_message(seconds))

    def _disarm(self) -> None:
        # Called before raising: the exception may come at the very end of the block, or in here.
        self._job_id = b""
        if self._seconds:
            self._seconds = 0.0
            signal.setitimer(signal.ITIMER_REAL, 0)


class ThreadInterrupts:
    """Interrupts jobs in other threads: one watcher thread raises the exception in them (PyThreadState_SetAsyncExc).

    It takes effect at the next bytecode. A job in a long C call is left to the supervisor.
    """

    def __init__(self) -> None:
        self._runs: dict[_Run, None] = {}  # removed by the thread that decides: it is over, or interrupted
        self._requests: deque[bytes] = deque()  # jobs to cancel
        self._change = BinarySemaphore()  # wakes the watcher: a request, a new deadline, or the end
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._stopped = False

    def limit(self, seconds: float | None, job_id: bytes = b"") -> _Run:
        """Raise TimeLimitExceeded inside the block after so many seconds, and JobCancelled at stop()."""
        if self._watcher is None:
            with self._lock:
                if self._watcher is None:
                    self._watcher = threading.Thread(target=self._watch_runs, name="rtq-interrupts", daemon=True)
                    self._watcher.start()
        return _Run(self, job_id, seconds)

    def cancel(self, job_id: bytes) -> None:
        """Have JobCancelled raised in that job, if it is running. May be called in a signal handler."""
        self._requests.append(job_id)
        self._change.release()

    def close(self) -> None:
        """End the watcher thread."""
        self._stopped = True
        self._change.release()
        if self._watcher is not None:
            self._watcher.join(timeout=5)

    def arm(self, run: _Run) -> None:
        """The run begins, in this thread."""
        self._runs[run] = None
        if run.deadline < math.inf:
            self._change.release()

    def disarm(self, run: _Run) -> None:
        """The run is over. Raises the exception if it is pending."""
        # Without a lock: the exception may come at any bytecode, and leave it locked.
        if self._runs.pop(run, run) is run:
            while not run.is_interrupted:
                time.sleep(0.0005)
            for _ in range(5):  # a pending exception is raised here, and not in the next job of this thread
                time.sleep(0)

    def _watch_runs(self) -> None:
        while not self._stopped:
            now = time.monotonic()
            for run in list(self._runs):
                if run.deadline <= now:
                    self._interrupt(run, _ThreadTimeLimit)
            nearest = min((run.deadline for run in list(self._runs)), default=math.inf)
            self._change.acquire(None if nearest == math.inf else max(0.0, nearest - now))
            while self._requests:
                job_id = self._requests.popleft()
                for run in list(self._runs):
                    if run.job_id == job_id:
                        self._interrupt(run, JobCancelled)

    def _interrupt(self, run: _Run, error: type[BaseException]) -> None:
        if self._runs.pop(run, run) is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(run.thread), ctypes.py_object(error))
            run.is_interrupted = True


class _Run:
    """A job that runs in a thread, as a context manager. The exception may be raised in its methods as well."""

    __slots__ = ("_interrupts", "_seconds", "deadline", "is_ended", "is_interrupted", "job_id", "thread")

    def __init__(self, interrupts: ThreadInterrupts, job_id: bytes, seconds: float | None) -> None:
        self._interrupts = interrupts
        self._seconds = seconds or 0.0
        self.thread = threading.get_ident()
        self.job_id = job_id
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.is_interrupted = False  # the exception was raised, or is pending
        self.is_ended = False  # no exception comes any more

    def __enter__(self) -> _Run:
        try:
            self._interrupts.arm(self)
            return self
        except _ThreadTimeLimit:
            raise TimeLimitExceeded(limit_message(self._seconds)) from None

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if not self.is_ended:
                self._interrupts.disarm(self)
        except _ThreadTimeLimit:
            kind = _ThreadTimeLimit
        if kind is _ThreadTimeLimit:
            raise TimeLimitExceeded(limit_message(self._seconds)) from None

    def end(self) -> None:
        """Do not interrupt the run any more, though its block continues. Raises the exception if it is pending."""
        self.__exit__(None)
        self.is_ended = True


class _ThreadTimeLimit(TimeLimitExceeded):
    """Raised without arguments: the interpreter creates the instance."""

    def __init__(self) -> None:
        super().__init__("The job ran longer than its time limit.")


class CoroutineInterrupts:
    """Interrupts coroutines on one event loop. For its thread."""

    def __init__(self) -> None:
        self._tasks: dict[bytes, asyncio.Future[Any]] = {}

    async def limited(self, coroutine: Coroutine[Any, Any, Any], seconds: float | None, job_id: bytes = b"") -> Any:
        """Await a coroutine. It is cancelled after so many seconds: raises TimeLimitExceeded unless it catches that."""
        current = asyncio.current_task()
        assert current is not None
        running = current if seconds is None else asyncio.ensure_future(coroutine)
        self._tasks[job_id] = running
        try:
            if seconds is None:
                return await coroutine
            done, _ = await asyncio.wait({running}, timeout=seconds)
            if not done:
                self.cancel(job_id)
                await asyncio.wait({running})
                if running.cancelled():
                    raise TimeLimitExceeded(limit_message(seconds))
            return running.result()
        finally:
            # Code after it must not be cancelled instead.
            self._tasks.pop(job_id, None)

    def cancel(self, job_id: bytes) -> None:
        """Cancel the coroutine of that job, if it is running; once."""
        running = self._tasks.pop(job_id, None)
        if running is not None:
            running.cancel()


def limit_message(seconds: float) -> str:
    """The message of TimeLimitExceeded."""
    return f"The job ran longer than its time limit of {seconds:g} s."
