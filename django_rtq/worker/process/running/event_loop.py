"""The event loop on which a worker process runs coroutine tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from django_rtq.worker.outcome import Outcome
from django_rtq.worker.process.run import Run
from django_rtq.worker.process.running.executor import Executor


class EventLoop:
    """An asyncio event loop in its own thread, started with the first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references

    def submit(self, executor: Executor, run: Run) -> Future[Outcome]:
        """Run a coroutine task."""
        return asyncio.run_coroutine_threadsafe(executor.execute_async(run), self._started())

    def start(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Start coroutines that raise nothing. One call for many: each call wakes the loop."""
        self._started().call_soon_threadsafe(self._create_tasks, coroutines)

    def _create_tasks(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
        for coroutine in coroutines:
            task = asyncio.ensure_future(coroutine)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=[self._loop], name="rtq-async", daemon=True)
            self._thread.start()
        return self._loop

    def cancel(self, executor: Executor, job_id: bytes) -> None:
        """Cancel the coroutine of a job, if it is running. May be called in a signal handler."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop was closed a moment ago
                loop.call_soon_threadsafe(executor.coroutines.cancel, job_id)

    def stop(self) -> None:
        """End the thread."""
        if self._loop is not None and self._thread is not None:
            self._is_stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=5)
            if not self._thread.is_alive():
                self._loop.close()
            self._loop = None

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._is_stopped:
            # SystemExit in a coroutine is a failure of its job, but asyncio raises it here as well.
            with suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
