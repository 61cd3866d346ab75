"""Runs several jobs of a process at once: functions in threads, coroutines on an event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from django.db import connections

from django_rtq.core.conf.config import Config
from django_rtq.core.threads import BinarySemaphore
from django_rtq.core.worker.process.running.batch import MAX_ACK_DELAY_SECONDS, ClaimAhead
from django_rtq.core.worker.process.running.interrupts import ThreadInterrupts
from django_rtq.core.worker.process.running.runner import Runner, exit_after_error
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import SharedState

# Jobs that were started together often end together. A trip for each would cost Redis twice as much in all.
GATHER_STEPS, GATHER_SECONDS = 2, 0.00005
REVOCATION_SECONDS = 0.1  # between two looks whether the supervisor has given back what it revoked


class ThreadedRunner(Runner):
    """Runs several jobs at once, one per slot."""

    _interrupts: ThreadInterrupts

    def __init__(self, config: Config, shared: SharedState, session: WorkerSession) -> None:
        super().__init__(config, shared, session, ThreadInterrupts())
        self._slots = self._free = slots = shared.slots
        self._ahead = ClaimAhead(slots, MAX_ACK_DELAY_SECONDS)
        self._waiting: deque[tuple[float, Run]] = deque()  # jobs without a slot, and when they were claimed
        self._released = 0  # jobs that were given back since the last call of run()
        self._is_suspect_next = False
        self._suspects = 0  # claimed jobs that have crashed a worker
        self._has_finished = False  # a job is over since the last claim
        self._lock = threading.Lock()  # for the attributes above
        self._awaited: Callable[[], bool] | None = None  # what the main thread waits for
        self._change = BinarySemaphore()  # wakes the main thread
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
    def has_waiting(self) -> bool:  # type: ignore[override]
        """Whether claimed jobs wait for a slot."""
        return bool(self._waiting)

    def wanted(self) -> int:
        """One for each free slot, and some ahead; none while suspects run, or wait until all slots are free.

        None while the supervisor gives back jobs under our name: it could not tell a new claim of them.
        """
        if self._suspects or (self._is_suspect_next and not self.is_idle) or self._shared.has_revocation:
            return 0
        return self._slots if self.is_idle else self._room()

    def _room(self) -> int:
        return self._free + max(0, self._ahead.jobs - len(self._waiting))

    def clear_finished_flag(self) -> None:
        """A claim follows: it sends the outcomes of all jobs that are over now."""
        self._has_finished = False

    def note_claim(self, found: int, *, is_suspect_next: bool) -> None:
        """If a suspect is next, claim nothing until all slots are free, or another worker has claimed it."""
        self._is_suspect_next = is_suspect_next

    def run(self, runs: Sequence[Run]) -> int:
        """Start the jobs. Returns when a claim is worth it: a slot is free, or many of the jobs ahead have started."""
        jobs = 0
        with self._lock:
            now = time.monotonic()
            for run in runs:
                for each in run.together:
                    each.entry = self._shared.add_entry(each.job_id)
                    jobs += 1
                self._waiting.append((now, run))
                self._suspects += run.crashes > 0
            taken = self._take_waiting()
        self._start(taken)
        while not self._wait_until(
            lambda: self._room() >= max(1, self._ahead.jobs // 2), MAX_ACK_DELAY_SECONDS if self._waiting else None
        ):
            self._release_overdue()
            if self._has_finished:
                break
        with self._lock:
            released, self._released = self._released, 0
        return jobs - released

    def wait(self, seconds: float) -> bool:
        """Wait until a job is over. Returns whether one is over since the last claim."""
        if self._waiting:
            seconds = min(seconds, MAX_ACK_DELAY_SECONDS)
        elif self._shared.has_revocation:
            seconds = min(seconds, REVOCATION_SECONDS)
        is_over = self._wait_until(lambda: self._has_finished, seconds)
        if not is_over and not self._free:
            self._ahead.stop()
        self._release_overdue()
        return is_over

    def _wait_until(self, is_over: Callable[[], bool], seconds: float | None = None) -> bool:
        until = None if seconds is None else time.monotonic() + seconds
        has_waited = False
        while True:
            with self._lock:
                is_waiting = not is_over()
                self._awaited = is_over if is_waiting else None
            if not is_waiting:
                if has_waited:
                    self._gather()
                return True
            has_waited = True
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._change.acquire(left)

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

    # -- jobs without a slot

    def _take_waiting(self) -> list[Run]:
        """Give free slots to waiting jobs. Needs the lock."""
        taken = []
        while self._free and self._waiting:
            _, run = self._waiting.popleft()
            if self._shared.start(run.entry):
                if run.others:
                    run.others = [other for other in run.others if self._start_other(other)]
                self._free -= 1
                taken.append(run)
            else:  # revoked
                for other in run.others:
                    self._shared.remove_entry(other.entry)
                self._session.disown([each.job_id for each in run.together])
                self._count_released([run])
        return taken

    def _start_other(self, run: Run) -> bool:
        """Start a job beside the one that it runs with. Needs the lock."""
        if self._shared.start(run.entry):
            return True
        self._session.disown([run.job_id])
        self._released += 1
        return False

    def _release_overdue(self) -> None:
        """Give back waiting jobs that could not start in time: the running ones are not short."""
        if self._waiting and time.monotonic() - self._waiting[0][0] >= MAX_ACK_DELAY_SECONDS:
            self._ahead.stop()
            self.release_waiting()
        elif self._shared.has_revocation:
            self.release_waiting()

    def release_waiting(self) -> None:
        """Give back all jobs that have no slot. A revocation has no effect from then on."""
        with self._lock:
            runs = [run for _, run in self._waiting]
            self._waiting.clear()
            self._count_released(runs)
            runs = [each for run in runs for each in run.together]
            for run in runs:
                self._shared.remove_entry(run.entry)
        self._release([run.job_id for run in runs])
        if self._shared.has_revocation:
            self._shared.end_claim()

    def _count_released(self, runs: Sequence[Run]) -> None:
        self._released += sum(len(run.together) for run in runs)
        self._suspects -= sum(run.crashes > 0 for run in runs)

    # -- jobs with a slot

    def _start(self, runs: list[Run]) -> None:
        """Run these jobs in their slots."""
        coroutines: list[Coroutine[Any, Any, None]] = []
        for run in runs:
            if run.others:
                if first := self._calls.open(run):
                    self._submit(partial(self._run_in_thread, first))
                else:
                    runs += self._free_slot(run)
            elif (outcome := self._executor.open(run)) is not None:
                self._record(run, outcome)
                runs += self._free_slot(run)
            elif run.task.is_async:
                coroutines.append(self._run_in_slot(run))
            else:
                self._submit(partial(self._run_in_thread, run))
        if coroutines:
            self._event_loop.start(coroutines)

    def _submit(self, act: Callable[[], None]) -> None:
        """Call it in a thread. Starts one more thread while there are fewer than slots."""
        if len(self._threads) < self._slots:
            with self._lock:
                if (number := len(self._threads)) < self._slots:
                    thread = threading.Thread(target=self._run_queued, name=f"rtq-jobs-{number}", daemon=True)
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

    def _run_in_thread(self, run: Run) -> None:
        self._executor.clean_up()
        if run.task.batch is not None:
            self._calls.execute(run)
        else:
            self._record(run, self._executor.execute(run))
        self._start(self._free_slot(run))

    async def _run_in_slot(self, run: Run) -> None:
        try:
            await self._run_coroutine(run)
            if following := self._free_slot(run):  # to open them may import modules
                self._submit(partial(self._start, following))
        except BaseException as error:  # noqa: BLE001 - the top of a coroutine
            exit_after_error(error, self._session)

    def _free_slot(self, run: Run) -> list[Run]:
        """The job is over. Returns the one that has its slot now."""
        with self._lock:
            self._free += 1
            self._has_finished = True
            self._suspects -= run.crashes > 0
            self._ahead.update(run.seconds * len(run.together))
            taken = self._take_waiting()
            is_awaited = self._awaited is not None and self._awaited()
            if is_awaited:
                self._awaited = None
        if is_awaited:
            self._change.release()
        return taken
