"""Runs jobs that one call of their function gets: they start together, and each has its own outcome.

Those whose arguments cannot be had take no part in the call, and fail for themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django_rtq.core.jobs.context import Call
from django_rtq.core.worker.outcome import Outcome, Retried
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.process.running.batch import Batch
from django_rtq.core.worker.process.running.executor import Executor, call_task
from django_rtq.exceptions import BatchFailed, Bury


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
        calls: dict[Run, Call] = {}
        results: dict[Run, Any] = {}
        errors: dict[Run, BaseException] = {}
        started = time.perf_counter()
        try:
            self._read_calls(runs, calls, errors)
            results = _results_of(calls, self._call(first, runs, list(calls.values())))
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - as for one job
            errors |= _errors_of(list(calls), error)
        seconds = (time.perf_counter() - started) / len(runs)
        outcomes = [
            executor.succeeded(run, results.get(run), seconds)
            if (raised := errors.get(run)) is None
            else executor.failed(run, raised, seconds)
            for run in runs
        ]
        if executor.uses_database:
            executor.clean_up()
        for run, outcome in zip(runs, _with_one_delay(runs, outcomes), strict=True):
            self._record(run, outcome)

    def _read_calls(self, runs: Sequence[Run], calls: dict[Run, Call], errors: dict[Run, BaseException]) -> None:
        """What the function gets. Raises what the first job raises if none can take part."""
        for run in runs:
            try:
                args = run.call_args()
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - a result of another step that is lost, or a Redis that is away
                errors[run] = error
                continue
            headers = run.options.get("headers", {})
            calls[run] = Call(args, run.kwargs, run.id, run.attempt, run.queue, run.client.decode(), headers)
        if not calls:
            raise errors[runs[0]]

    def _call(self, first: Run, runs: Sequence[Run], calls: list[Call]) -> Any:
        """Call the function, within the shortest time limit of the jobs. One of many that is to stop stops no other."""
        executor = self._executor
        if (around := executor.wrapped(call_task)) is None:  # before the limit: it may take a lock
            call = partial(executor.call, first, first.task.body, [calls], {})
        else:
            job = replace(first.job_for_middleware(), args=[calls], kwargs={})
            call = partial(executor.call, first, around, [job], {})
        limits = [limit for run in runs if (limit := run.time_limit(executor.config)) is not None]
        shortest = min(limits, default=None)
        if shortest is not None:
            for run in runs:
                executor.set_kill_deadline(shortest, run.entry)
        with executor.limit(shortest, first.job_id if len(runs) == 1 else b""):
            return call()


def _results_of(runs: Collection[Run], returned: Any) -> dict[Run, Any]:
    """The result of each job. Raises Bury for what is no list of them: another run would return the same."""
    if returned is None:
        return {}
    if not isinstance(returned, list | tuple) or len(returned) != len(runs):
        found = f"a list of {len(returned)}" if isinstance(returned, list | tuple) else f"a {type(returned).__name__}"
        raise Bury(
            f"{next(iter(runs)).task.name} got {len(runs)} calls and returned {found}. It has to return None, or a "
            "list with one result for each call, in their order."
        )
    return dict(zip(runs, returned, strict=True))


def _errors_of(runs: Sequence[Run], error: BaseException) -> dict[Run, BaseException]:
    """What these jobs fail by: the function, or something before or behind it, has raised this."""
    for run in runs:
        run.together_failed = len(runs)
    if not isinstance(error, BatchFailed):
        return dict.fromkeys(runs, error)
    if unknown := [number for number in error.errors if number >= len(runs)]:
        unfit = Bury(
            f"{runs[0].task.name} raised BatchFailed for call {unknown[0]}, but it got {len(runs)} calls, from 0 on."
        )
        unfit.__cause__ = error
        return dict.fromkeys(runs, unfit)
    return {runs[number]: of_call for number, of_call in error.errors.items()}


def _with_one_delay(runs: Sequence[Run], outcomes: list[Outcome]) -> list[Outcome]:
    """Let jobs that have failed by the same error come back at the same time, so that they run together again."""
    delays: dict[tuple[int, int], float] = {}
    for number, (run, outcome) in enumerate(zip(runs, outcomes, strict=True)):
        if isinstance(outcome, Retried):
            delay = delays.setdefault((id(outcome.error), run.failures), outcome.delay_seconds)
            outcomes[number] = replace(outcome, delay_seconds=delay)
    return outcomes
