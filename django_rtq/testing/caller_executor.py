"""Runs jobs in the calling thread and its transaction, with the executor of workers."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from asgiref.sync import async_to_sync

from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import CurrentRun, Interruptible, current_run
from django_rtq.core.worker.outcome import Outcome
from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.process.running.executor import Executor
from django_rtq.core.worker.process.running.interrupts import MainThreadInterrupts, ThreadInterrupts
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.workflows.batches import CallRunner


class CallerExecutor(Executor):
    """Runs jobs in the thread that calls run(). Coroutines run on the event loop above it, or on a new one.

    Leaves database connections alone: they and their transactions belong to the test. Context variables are isolated as
    in a worker: jobs see those of the moment when this object was created.
    """

    def __init__(
        self, config: Config, shared: SharedState, progress: ProgressWriter | None = None, *, time_limits: bool
    ) -> None:
        super().__init__(config, shared, _limit, progress)
        self.close()
        self._base = contextvars.copy_context()
        self._time_limits = time_limits

    def open(self, run: Run) -> Outcome | None:
        if not self._time_limits:
            vars(run)["time_limit"] = lambda config: None  # whatever its task says
        return super().open(run)

    def run(self, run: Run) -> Outcome:
        """Run a job. Raises RuntimeError for a coroutine if an event loop runs in this thread."""
        if (outcome := self.open(run)) is not None:
            return outcome
        if run.task.batch is not None:
            outcomes: list[Outcome] = []
            CallRunner(self, lambda _run, ended: outcomes.append(ended), lambda _ids: None).execute(run)
            return outcomes[0]
        if not run.task.is_async:
            return self.execute(run)
        _check_no_loop_runs(run.task_name)
        return self.prepare_context(run).run(async_to_sync(self.execute_async), run)

    def prepare_context(self, run: Run) -> contextvars.Context:
        run.variables = self._base.copy()
        run.variables.run(current_run.set, CurrentRun(run))
        return run.variables

    def clean_up(self, *, is_thread_ending: bool = False) -> None:
        """Nothing to do."""


@contextmanager
def _limit(seconds: float | None, job_id: bytes = b"") -> Iterator[Interruptible | None]:
    """Raise TimeLimitExceeded inside the block after so many seconds."""
    if seconds is None:
        yield None
        return
    with ExitStack() as stack:
        interrupts: Any
        if threading.current_thread() is threading.main_thread():
            stack.callback(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
            interrupts = MainThreadInterrupts()
        else:
            interrupts = stack.enter_context(closing(ThreadInterrupts()))
        yield stack.enter_context(interrupts.limit(seconds, job_id))


def _check_no_loop_runs(task: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{task} is a coroutine function, and delay() or drain() was called in a thread that runs an event loop. "
        "Use `await adelay()`, `await adrain()` or `async with workflow()`."
    )
