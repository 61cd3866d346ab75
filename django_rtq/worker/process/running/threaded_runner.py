"""Runs several jobs of a process at once: functions in threads, coroutines on an event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import connections

from django_rtq.conf import Config
from django_rtq.worker.outcome import Outcome
from django_rtq.worker.process.run import Run
from django_rtq.worker.process.running.executor import Executor
from django_rtq.worker.process.running.interrupts import ThreadInterrupts
from django_rtq.worker.process.running.runner import Runner, exit_after_error
from django_rtq.worker.process.session import WorkerSession
from django_rtq.worker.shared_memory import SharedState

# Jobs that were started together often end together. A trip for each would cost Redis twice as much in all.
GATHER_STEPS, GATHER_SECONDS = 2, 0.00005


def make_runner(config: Config, shared: SharedState, session: WorkerSession, concurrency: int) -> Runner:
    """A runner for one job at a time in the main thread, or for several in threads."""
    return Runner(config, shared, session) if concurrency == 1 else ThreadedRunner(config, shared, session, concurrency)


class ThreadedRunner(Runner):
    """Runs several jobs at once, one per slot."""

    def __init__(self, config: Config, shared: SharedState, session: WorkerSession, slots: int) -> None:
        super().__init__(config, shared, session)
        self._interrupts: ThreadInterrupts = ThreadInterrupts()
        self._executor = Executor(config, shared, self._isolation, self._interrupts.limit, self._progress)
        self._slots = self._free = slots
        self._is_suspect_next = False
        self._suspects = 0  # running jobs that have crashed a worker
        self._has_finished = False  # a job is over since the last claim
        self._lock = threading.Lock()  # for the attributes above
        self._is_waiting = False  # the main thread waits for a change of them
        self._changes: queue.SimpleQueue[None] = queue.SimpleQueue()  # wakes it: takes less time than a Condition
        self._queued: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def is_idle(self) -> bool:  # type: ignore[override]
        """Whether all slots are free."""
        return self._free == self._slots

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """Whether all slots are free, and none became free since the last claim."""
        with self._lock:
            return self.is_idle and not self._has_finished

    @property
    def idle_slots(self) -> int:  # type: ignore[override]
        """All slots if all are free, else 0."""
        return self._slots if self.is_idle else 0

    def wanted(self) -> int:
        """One for each free slot; none while suspects run, or wait until all slots are free."""
        if self._suspects or (self._is_suspect_next and not self.is_idle):
            return 0
        return self._free

    def clear_finished_flag(self) -> None:
        """A claim follows: it sends the outcomes of all jobs that are over now."""
        self._has_finished = False

    def set_suspect_next(self, *, is_suspect_next: bool) -> None:
        """If so, claim nothing until all slots are free, or another worker has claimed it."""
        self._is_suspect_next = is_suspect_next

    def run(self, runs: Sequence[Run]) -> int:
        """Start the jobs. Returns when a slot is free."""
        with self._lock:
            self._free -= len(runs)
            self._suspects += sum(run.crashes > 0 for run in runs)
        given_back = 0
        coroutines: list[Coroutine[Any, Any, None]] = []
        for run in runs:
            run.entry = self._shared.add_entry(run.job_id)
            if not self._shared.start(run.entry):
                self._release([run.job_id])
                self._free_slot(run)
                given_back += 1
            elif (outcome := self._executor.open(run)) is not None:
                self._finish(run, outcome)
            elif run.task.is_async:
                coroutines.append(self._run_coroutine(run))
            else:
                self._submit(partial(self._run_in_thread, run))
        if coroutines:
            self._event_loop.start(coroutines)
        self._wait_until(lambda: self._free > 0)
        return len(runs) - given_back

    def wait(self, seconds: float) -> bool:
        """Wait until a job is over. Returns whether one is over since the last claim."""
        return self._wait_until(lambda: self._has_finished, seconds)

    def _wait_until(self, is_over: Callable[[], bool], seconds: float | None = None) -> bool:
        until = None if seconds is None else time.monotonic() + seconds
        has_waited = False
        while True:
            with self._lock:
                is_waiting = self._is_waiting = not is_over()
            if not is_waiting:
                if has_waited:
                    self._gather()
                return True
            has_waited = True
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            with suppress(queue.Empty):
                self._changes.get(timeout=left)

    def _gather(self) -> None:
        """Wait a moment while further jobs end, so that one round trip does for all of them."""
        free = 0
        for _ in range(GATHER_STEPS):
            if free < self._free < self._slots:
                free = self._free
                time.sleep(GATHER_SECONDS)

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
        if len(self._threads) < self._slots:
            self._start_thread()
        self._queued.put(act)

    def _start_thread(self) -> None:
        with self._lock:
            if len(self._threads) < self._slots:
                thread = threading.Thread(target=self._run_queued, name=f"rtq-jobs-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run_queued(self) -> None:
        while (act := self._queued.get()) is not None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - the top of a thread
                exit_after_error(error, self._session)
        connections.close_all()

    def _run_in_thread(self, run: Run) -> None:
        self._isolation.clean_up()
        self._finish(run, self._executor.execute(run))

    async def _run_coroutine(self, run: Run) -> None:
        try:
            outcome = await self._executor.execute_async(run)
            if run.may_run_once:  # settling blocks, and must not block the event loop
                self._submit(partial(self._finish, run, outcome))
            else:
                self._finish(run, outcome)
        except BaseException as error:  # noqa: BLE001 - the top of a coroutine
            exit_after_error(error, self._session)

    def _finish(self, run: Run, outcome: Outcome) -> None:
        self._record(run, outcome)
        self._free_slot(run)

    def _free_slot(self, run: Run) -> None:
        with self._lock:
            self._free += 1
            self._has_finished = True
            self._suspects -= run.crashes > 0
            is_waiting, self._is_waiting = self._is_waiting, False
        if is_waiting:
            self._changes.put(None)
