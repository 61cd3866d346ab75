"""Runs the jobs of a process one after another, in the main thread; coroutines on an event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, NoReturn

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async

from django_rtq.core import signals
from django_rtq.core.conf.config import Config
from django_rtq.core.extension import required
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.tasks import registry
from django_rtq.core.threads import ReconnectDelay
from django_rtq.core.worker.operating_system import Handlers, restore_handlers
from django_rtq.core.worker.options import EXIT_FAILED, EXIT_OUT_OF_MEMORY
from django_rtq.core.worker.outcome import ACKED, Outcome
from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.core.worker.process.running.batch import Batch, BatchSize, BatchWatch
from django_rtq.core.worker.process.running.executor import Executor
from django_rtq.core.worker.process.running.interrupts import MainThreadInterrupts, ThreadInterrupts
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import Revoked, SharedState
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")


class EventLoop:
    """An asyncio event loop in its own thread, started with the first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine, and wait until it has ended. Raises what it raises."""
        asyncio.run_coroutine_threadsafe(coroutine, self._started()).result()

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


def exit_after_error(error: BaseException, session: WorkerSession) -> NoReturn:
    """Exit the process: an error outside a job would leak the slot of its thread."""
    if isinstance(error, MemoryError):
        exit_out_of_memory(session)
    traceback.print_exception(type(error), error, error.__traceback__)
    sys.stderr.flush()
    os._exit(EXIT_FAILED)


def exit_out_of_memory(session: WorkerSession) -> NoReturn:
    """Exit with the code of the OOM killer, after trying to settle. Shared memory has the running jobs."""
    try:
        session.settle()
    except BrokerError:
        pass
    finally:
        os._exit(EXIT_OUT_OF_MEMORY)


class Runner:
    """Runs the jobs of a claim one after another, in the main thread."""

    is_idle = True  # no job is running: always so between two claims
    is_settled = True  # no job is running, and the last claim has sent all outcomes
    has_waiting = False  # whether claimed jobs wait for a slot

    def __init__(
        self,
        config: Config,
        shared: SharedState,
        session: WorkerSession,
        interrupts: MainThreadInterrupts | ThreadInterrupts | None = None,
    ) -> None:
        self._shared = shared
        self._session = session
        self._interrupts = interrupts or MainThreadInterrupts()
        self._progress = ProgressWriter(session.report_progress, session.backend)
        self._executor = Executor(config, shared, self._interrupts.limit, self._progress)
        self._event_loop = EventLoop()
        self._size = BatchSize()
        self._watch = BatchWatch(session, self._release)
        self._is_stopping = False  # the process is told to stop
        self._is_hurried = False  # it is, or was told to be quiet since the last look
        self.handlers: Handlers = []  # of signals, which jobs may replace

    @cached_property
    def _calls(self) -> Any:
        """What runs jobs of tasks with `batch`."""
        return required("batches").CallRunner(self._executor, self._record, self._release)

    def note_claim(self, found: int, *, is_suspect_next: bool) -> None:
        """A claim has found so many jobs. The next one of the queue may have crashed a worker, and waits for a process
        that runs few other jobs."""
        self._size.note_claim(found)

    def wanted(self) -> int:
        """How many jobs to claim."""
        return self._size.jobs

    def clear_finished_flag(self) -> None:
        """A claim follows: it sends the outcomes of all jobs that are over now."""

    def run(self, runs: Sequence[Run]) -> int:
        """Run the jobs of one claim, and record their outcomes. Returns how many were not released."""
        has_others = bool(registry.batch_tasks) and any(run.others for run in runs)
        is_watched = len(runs) > 1  # jobs of one call start together
        if has_others:
            runs = [each for run in runs for each in run.together]
        batch = Batch([run.job_id for run in runs], self._shared)
        if is_watched:
            self._watch.begin(batch)
        self._executor.clean_up()  # connections may be too old after an idle time
        began = last = time.perf_counter()
        slowest, done = 0.0, 0
        while not (self._is_hurried and self._must_rest()) and (number := batch.next()) is not None:
            run = runs[number]
            run.entry = number
            if not self._shared.start(number):
                self._release([run.job_id, *batch.cut()])
                break
            if has_others and run.others:
                done += self._calls.run(run, batch)
            else:
                self._run_alone(run)
            restore_handlers(self.handlers)
            now = time.perf_counter()
            slowest, last, done = max(slowest, now - last), now, done + 1
        if is_watched:
            self._watch.end()
        self._give_back(batch.end())
        self._size.update(done, last - began, slowest=slowest, is_cut=done < len(runs))
        if has_others:
            self._size = BatchSize()  # the next job may have others with it again
        return done

    def _run_alone(self, run: Run) -> None:
        """Run a job that has started, and record its outcome."""
        if (outcome := self._executor.open(run)) is not None:
            self._record(run, outcome)
        elif run.task.is_async:
            self._event_loop.run(self._run_coroutine(run))
        elif run.task.batch is not None:
            self._calls.execute(run)
        else:  # _record(), inlined: this runs for every job
            self._session.add(run, self._executor.execute(run))
            if run.may_run_once:
                self._settle_now(run)

    def _give_back(self, rest: Sequence[bytes]) -> None:
        """A claim is over, but for these jobs, which have not started."""
        if rest:
            self._release(rest)
        if self._shared.has_revocation and self._shared.revoked is not Revoked.NOTHING:
            self._session.disown(())  # the supervisor may have settled what was finished

    def hurry(self, *, is_stopping: bool) -> None:
        """Start no more of the claimed jobs, and give them back, because the process stops or is to be quiet. For a
        signal handler."""
        self._is_stopping |= is_stopping
        self._is_hurried = True
        self._watch.hurry()

    def _must_rest(self) -> bool:
        self._is_hurried = False  # first: a signal may come at any time
        if self._is_stopping or self._shared.is_quiet:
            self._is_hurried = True
        return self._is_hurried

    def wait(self, seconds: float) -> bool:
        """Wait for running jobs: there are none."""
        return True

    def release_waiting(self) -> None:
        """Give back claimed jobs that wait for a slot: there are none."""

    def cancel_jobs(self) -> None:
        """Interrupt jobs with a cancel request in shared memory. For a signal handler: may raise JobCancelled."""
        for job_id in self._shared.cancel_requests():
            self._event_loop.cancel(self._executor, job_id)
            self._interrupts.cancel(job_id)

    def stop(self) -> None:
        """End all threads."""
        self._watch.stop()
        self._event_loop.stop()
        self._progress.stop()
        self._executor.close()

    def _release(self, job_ids: Sequence[bytes]) -> None:
        """Give jobs back, unless the supervisor does."""
        if self._shared.revoked is Revoked.NOTHING:
            self._session.release(job_ids)
        else:
            self._session.disown(job_ids)

    def _record(self, run: Run, outcome: Outcome) -> None:
        self._session.add(run, outcome)
        if run.may_run_once:
            self._settle_now(run)

    def _settle_now(self, run: Run) -> None:
        """Settle at once, and block until Redis has the outcome: if this machine died before, the job would be dead.

        While Redis is unreachable this retries until the supervisor kills the process. Then the supervisor settles it.
        """
        backoff = ReconnectDelay()
        while True:
            try:
                return self._session.settle()
            except BrokerError as error:
                seconds = backoff.next_seconds()
                if seconds <= 0.1:
                    logger.warning(
                        "job %s must not run twice: waiting until its outcome is in Redis: %s", run.id, error,
                        extra=about_jobs([run.id], queue=run.queue, task=run.task_name),
                    )  # fmt: skip
            time.sleep(seconds)

    async def _run_coroutine(self, run: Run) -> None:
        """Run a coroutine task, and record its outcome.

        Like a request under ASGI, it has a thread of its own for the ORM, and so connections of its own. The thread
        starts when it needs one.
        """
        own = ThreadSensitiveContext()
        SyncToAsync.thread_sensitive_context.set(own)  # without `async with`, which costs jobs that need no thread more
        outcome = await self._executor.execute_async(run)
        # Settling blocks, and receivers may use the ORM. That of a success has some only if the project connects one.
        if run.may_run_once or outcome.verb != ACKED or signals.job_succeeded.receivers:
            await sync_to_async(self._record)(run, outcome)
        else:
            self._record(run, outcome)
        if thread := SyncToAsync.context_to_thread_executor.pop(own, None):
            clean_up = partial(self._executor.clean_up, is_thread_ending=True)
            await asyncio.get_running_loop().run_in_executor(thread, clean_up)
            thread.shutdown(wait=False)
