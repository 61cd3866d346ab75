"""One call of a function for many jobs, and what became of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from django_rtq.core.conf.config import Config
from django_rtq.core.jobs.context import Call
from django_rtq.core.worker.outcome import Outcome, Retried
from django_rtq.core.worker.process.run import Run
from django_rtq.exceptions import BatchFailed
from django_rtq.workflows.batches.declared import errors_of, results_of


class CalledTogether:
    """The jobs of one call. Those whose arguments cannot be had take no part in it, and fail for themselves."""

    def __init__(self, runs: Sequence[Run], config: Config) -> None:
        self._runs = runs
        self._taking_part: list[Run] = []
        self._results: dict[Run, Any] = {}
        self._errors: dict[Run, BaseException] = {}
        #: The shortest time limit of the jobs. None: none of them has one.
        self.limit = min((limit for run in runs if (limit := run.time_limit(config)) is not None), default=None)
        #: One of many that is to stop does not stop the others.
        self.interruptible_id = runs[0].job_id if len(runs) == 1 else b""

    def calls(self) -> list[Call]:
        """What the function gets. Raises what the first job raises if none can take part."""
        calls = []
        for run in self._runs:
            try:
                args = run.call_args()
            except MemoryError:
                raise
            except Exception as error:  # noqa: BLE001 - a result of another step that is lost, or a Redis that is away
                self._errors[run] = error
                continue
            self._taking_part.append(run)
            headers = run.options.get("headers", {})
            calls.append(Call(args, run.kwargs, run.id, run.attempt, run.queue, run.client.decode(), headers))
        if not calls:
            raise self._errors[self._runs[0]]
        return calls

    def end(self, returned: Any) -> None:
        """The function has returned. Raises Bury if that is no list of results for its calls."""
        results = results_of(self._runs[0].task, returned, len(self._taking_part))
        self._results.update(zip(self._taking_part, results, strict=True))

    def fail(self, error: BaseException) -> None:
        """The function, or something before or behind it, has raised this."""
        errors: dict[int, BaseException] | None = None
        if isinstance(error, BatchFailed):
            try:
                errors = errors_of(self._runs[0].task, error, len(self._taking_part))
            except Exception as unfit:  # noqa: BLE001 - its message says what it is
                error = unfit
        for number, run in enumerate(self._taking_part):
            run.together_failed = len(self._taking_part)
            if errors is None:
                self._errors[run] = error
            elif number in errors:
                self._errors[run] = errors[number]

    def ended(self) -> Iterator[tuple[Run, Any, BaseException | None]]:
        """Of each job the result, and what it raised or None."""
        for run in self._runs:
            yield run, self._results.get(run), self._errors.get(run)

    def with_one_delay(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Let jobs that have failed by the same error come back at the same time, so that they run together again."""
        delays: dict[tuple[int, int], float] = {}
        for number, (run, outcome) in enumerate(zip(self._runs, outcomes, strict=True)):
            if isinstance(outcome, Retried):
                delay = delays.setdefault((id(outcome.error), run.failures), outcome.delay_seconds)
                outcomes[number] = replace(outcome, delay_seconds=delay)
        return outcomes


def most_together(run: Run, config: Config) -> int:
    """How many jobs a call may get with this one. Half as many after two failures, a quarter after three; in its last
    attempt it runs alone, so that one job does not bury others.
    """
    most = run.task.batch or 1
    if run.failures < 1:
        return most
    if run.failures + 1 >= run.max_attempts(config):
        return 1
    return max(1, most >> (run.failures - 1))
