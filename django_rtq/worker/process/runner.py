"""Runs the jobs of a process: in the main thread, or in several threads; coroutines on an event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import NoReturn

from django.db import connections

from django_rtq.conf import Config
from django_rtq.exceptions import BrokerError
from django_rtq.loop import ReconnectDelay
from django_rtq.worker.exit_codes import EXIT_FAILED, EXIT_OUT_OF_MEMORY
from django_rtq.worker.os_signals import SignalHandlers
from django_rtq.worker.outcome import Outcome
from django_rtq.worker.process.batch import Batch, BatchSize, BatchWatch
from django_rtq.worker.process.executor import Executor
from django_rtq.worker.process.interrupts import MainThreadInterrupts, ThreadInterrupts
from django_rtq.worker.process.isolation import Isolation
from django_rtq.worker.process.progress import ProgressWriter
from django_rtq.worker.process.run import Run
from django_rtq.worker.process.session import WorkerSession
from django_rtq.worker.shared_entries import Revoked
from django_rtq.worker.shared_memory import SharedState

logger = logging.getLogger("django_rtq")


def make_runner(config: Config, shared: SharedState, session: WorkerSession, concurrency: int) -> Runner:
    """A runner for one job at a time in the main thread, or for several in threads."""
    return Runner(config, shared, session) if concurrency == 1 else ThreadedRunner(config, shared, session, concurrency)


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


class EventLoop:
    """An asyncio event loop in its own thread, started with the first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def submit(self, executor: Executor, run: Run) -> Future[Outcome]:
        """Run a coroutine task."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, args=[self._loop], name="rtq-async", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(executor.execute_async(run), self._loop)

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


class Runner:
    """Runs the jobs of a claim one after another, in the main thread."""

    is_idle = True  # no job is running: always so between two claims
    idle_slots = 1  # the number of slots if no job is running, else 0
    is_settled = True  # no job is running, and the last claim has sent all outcomes

    def __init__(self, config: Config, shared: SharedState, session: WorkerSession) -> None:
        self._shared = shared
        self._session = session
        self._isolation = Isolation()
        self._interrupts: MainThreadInterrupts | ThreadInterrupts = MainThreadInterrupts()
        self._progress = ProgressWriter(session.report_progress)
        self._executor = Executor(config, shared, self._isolation, self._interrupts.limit, self._progress)
        self._event_loop = EventLoop()
        self._size = BatchSize()
        self._watch = BatchWatch(session, self._release)
        self.handlers = SignalHandlers()

    def wanted(self) -> int:
        """How many jobs to claim."""
        return self._size.jobs

    def clear_finished_flag(self) -> None:
        """A claim follows: it sends the outcomes of all jobs that are over now."""

    def set_suspect_next(self, *, is_suspect_next: bool) -> None:
        """Whether the next job of the queue has crashed a worker, and waits for a process that runs few other jobs."""

    def run(self, runs: Sequence[Run]) -> int:
        """Run the jobs of one claim, and record their outcomes. Returns how many were not released."""
        batch = Batch([run.job_id for run in runs], self._shared)
        is_watched = len(runs) > 1
        if is_watched:
            self._watch.begin(batch)
        self._isolation.clean_up()  # connections may be too old after an idle time
        began = last = time.perf_counter()
        slowest, done = 0.0, 0
        while (place := batch.next()) is not None:
            run = runs[place]
            run.entry = place
            if not self._shared.start(place):
                self._release([run.job_id, *batch.cut()])
                break
            self._record(run, self._executor.open(run) or self._execute(run))
            self.handlers.restore()
            now = time.perf_counter()
            slowest, last, done = max(slowest, now - last), now, done + 1
        if is_watched:
            self._watch.end()
        if self._shared.has_revocation and self._shared.revoked is not Revoked.NOTHING:
            self._session.disown(())  # the supervisor may have settled what was finished
        self._size.update(done, last - began, slowest=slowest)
        return done

    def wait(self, seconds: float) -> bool:
        """Wait for running jobs: there are none."""
        return True

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
        self._isolation.close()

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
                        "job %s must not run twice: waiting until its outcome is in Redis: %s", run.id, error
                    )
            time.sleep(seconds)

    def _execute(self, run: Run) -> Outcome:
        if run.task.is_async:
            return self._event_loop.submit(self._executor, run).result()
        return self._executor.execute(run)


class ThreadedRunner(Runner):
    """Runs several jobs at once, one per slot: functions in threads, coroutines on the event loop."""

    def __init__(self, config: Config, shared: SharedState, session: WorkerSession, slots: int) -> None:
        super().__init__(config, shared, session)
        self._interrupts: ThreadInterrupts = ThreadInterrupts()
        self._executor = Executor(config, shared, self._isolation, self._interrupts.limit, self._progress)
        self._free = list(range(slots))
        self._slots = slots
        self._is_suspect_next = False
        self._suspects = 0  # running jobs that have crashed a worker
        self._has_finished = False  # a job is over since the last claim
        self._changed = threading.Condition()
        self._queued: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def is_idle(self) -> bool:  # type: ignore[override]
        """Whether all slots are free."""
        return len(self._free) == self._slots

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """Whether all slots are free, and none became free since the last claim."""
        with self._changed:
            return self.is_idle and not self._has_finished

    @property
    def idle_slots(self) -> int:  # type: ignore[override]
        """All slots if all are free, else 0."""
        return self._slots if self.is_idle else 0

    def wanted(self) -> int:
        """One for each free slot; none while suspects run, or wait until all slots are free."""
        if self._suspects or (self._is_suspect_next and not self.is_idle):
            return 0
        return len(self._free)

    def clear_finished_flag(self) -> None:
        """A claim follows: it sends the outcomes of all jobs that are over now."""
        self._has_finished = False

    def set_suspect_next(self, *, is_suspect_next: bool) -> None:
        """If so, claim nothing until all slots are free, or another worker has claimed it."""
        self._is_suspect_next = is_suspect_next

    def run(self, runs: Sequence[Run]) -> int:
        """Start the jobs. Returns when a slot is free."""
        given_back = 0
        for run in runs:
            with self._changed:
                slot = self._free.pop()
                self._suspects += run.crashes > 0
            run.entry = self._shared.add_entry(run.job_id)
            if not self._shared.start(run.entry):
                self._release([run.job_id])
                self._free_slot(run, slot)
                given_back += 1
                continue
            outcome = self._executor.open(run)
            if outcome is not None:
                self._finish(run, slot, outcome)
            elif run.task.is_async:
                future = self._event_loop.submit(self._executor, run)
                future.add_done_callback(partial(self._coroutine_done, run, slot))
            else:
                self._submit(partial(self._run_in_thread, run, slot))
        with self._changed:
            self._changed.wait_for(lambda: self._free)
        return len(runs) - given_back

    def wait(self, seconds: float) -> bool:
        """Wait until a job is over. Returns whether one is over since the last claim."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_finished, seconds)

    def stop(self) -> None:
        """End all threads."""
        for _ in self._threads:
            self._queued.put(None)
        for thread in self._threads:
            thread.join(timeout=5)
        self._interrupts.close()
        super().stop()

    def _submit(self, act: Callable[[], None]) -> None:
        """Call it in a thread. Starts one more thread while there are fewer than slots."""
        with self._changed:
            if len(self._threads) < self._slots:
                thread = threading.Thread(target=self._run_queued, name=f"rtq-jobs-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queued.put(act)

    def _run_queued(self) -> None:
        while (act := self._queued.get()) is not None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - the top of a thread
                exit_after_error(error, self._session)
        connections.close_all()

    def _run_in_thread(self, run: Run, slot: int) -> None:
        self._isolation.clean_up()
        self._finish(run, slot, self._executor.execute(run))

    def _coroutine_done(self, run: Run, slot: int, future: Future[Outcome]) -> None:
        try:
            if run.may_run_once:  # settling blocks, and must not block the event loop
                self._submit(partial(self._finish, run, slot, future.result()))
            else:
                self._finish(run, slot, future.result())
        except BaseException as error:  # noqa: BLE001 - the top of a thread
            exit_after_error(error, self._session)

    def _finish(self, run: Run, slot: int, outcome: Outcome) -> None:
        self._record(run, outcome)
        self._free_slot(run, slot)

    def _free_slot(self, run: Run, slot: int) -> None:
        with self._changed:
            self._free.append(slot)
            self._has_finished = True
            self._suspects -= run.crashes > 0
            self._changed.notify_all()
