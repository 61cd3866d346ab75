"""Runs jobs that one call of their function gets: they start together, and each has its own outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django_rtq.core.worker.outcome import Outcome
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.process.running.batch import Batch
from django_rtq.core.worker.process.running.executor import Executor
from django_rtq.workflows.batches.batch_calls import CalledTogether


class CallRunner:
    """Runs calls for a runner, which records outcomes, and releases jobs that cannot start. Any thread may use it."""

    def __init__(
        self,
        executor: Executor,
        record: Callable[[Run, Outcome], None],
        release: Callable[[Sequence[bytes]], None],
    ) -> None:
        self._executor = executor
        self._record = record
        self._release = release

    def run(self, run: Run, batch: Batch) -> int:
        """Run a job of a batch that has started, and its others, which are next. Returns how many others started."""
        started: list[Run] = []
        for other in run.others:
            number = batch.next()
            if number is None:
                break  # who has cut the batch has given the others back
            other.entry = number
            if not self._executor.shared.start(number):
                self._release([other.job_id, *batch.cut()])
                break
            started.append(other)
        run.others = started
        if first := self.open(run):
            self.execute(first)
        return len(started)

    def open(self, run: Run) -> Run | None:
        """Open jobs that are to run together. Returns the first of those that can run, with the others of them."""
        able: list[Run] = []
        for each in run.together:
            if (outcome := self._executor.open(each)) is None:
                able.append(each)
            else:
                self._record(each, outcome)
        if not able:
            return None
        able[0].others = able[1:]
        return able[0]

    def execute(self, first: Run) -> None:
        """Call the function for jobs that are open, and record their outcomes. Raises MemoryError, as for one job."""
        executor, runs = self._executor, first.together
        for run in (*first.others, first):  # the first one is the current one of this thread then
            executor.begin(run)
        together = CalledTogether(runs, executor.config)
        started = time.perf_counter()
        try:
            calls = together.calls()
            call = self._call(first, calls)  # before the limit: it may take a lock
            if together.limit is not None:
                for run in runs:
                    executor.set_kill_deadline(together.limit, run.entry)
            with executor.limit(together.limit, together.interruptible_id):
                returned = call()
            together.end(returned)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - as for one job
            together.fail(error)
        seconds = time.perf_counter() - started
        outcomes: list[Outcome] = []
        for run, result, raised in together.ended():
            run.seconds = seconds / len(runs)
            outcomes.append(executor.succeeded(run, result) if raised is None else executor.failed(run, raised))
        if executor.isolation.uses_database:
            executor.isolation.clean_up()
        for run, outcome in zip(runs, together.with_one_delay(outcomes), strict=True):
            self._record(run, outcome)

    def _call(self, first: Run, calls: list[Any]) -> Callable[[], Any]:
        isolation, middleware = self._executor.isolation, self._executor.middleware
        if middleware is None:
            return partial(isolation.call_with, first, first.task.body, calls)
        job = replace(first.job_for_middleware(), args=[calls], kwargs={})
        return partial(isolation.call_with, first, middleware.call, job)
