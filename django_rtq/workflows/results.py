"""The results of jobs of a workflow, as arguments of later ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Generic, SupportsIndex, TypeVar

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import place_of_job
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import noting_outage
from django_rtq.exceptions import InvalidWorkflow, WrongState
from django_rtq.workflows import workflow_store

PAGE = 500  # results that are read at once
_LOST = object()
R = TypeVar("R")
RESULT_TAG = b'{"$rtq":["result",'  # how a ResultOf begins in a record


class ResultOf(str):
    """The result of a job of a workflow, as an argument of a later one: it is put in its place when that one runs.

    As text it says so, to people who look at the arguments.
    """

    workflow: str
    number: int  # of the job, or of the first one, in its workflow
    size: int  # -1: it is one result; else so many, as an iterable
    step: Any = None  # that it comes from, in the block that adds it

    def __new__(cls, workflow: str, number: int, size: int = -1) -> ResultOf:
        what = "result of job" if size < 0 else f"results of {size} jobs from job"
        made = super().__new__(cls, f"<{what} {number} of workflow {workflow}>")
        made.workflow, made.number, made.size = workflow, number, size
        return made

    def _known(self) -> str:
        """The text. Raises InvalidWorkflow in the block, where the result is not known yet."""
        if self.step is not None:
            raise InvalidWorkflow(
                self.workflow,
                "has this result when its job has run: here it can only be passed on, as an argument. The job that "
                "gets it can add jobs for its items, with context.workflow.map().",
            )
        return str(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        return self._known()[index]

    def __add__(self, other: str) -> str:
        return self._known() + other

    def __format__(self, how: str) -> str:
        return format(self._known(), how)


serializer.add_kind("result", ResultOf, lambda value: (value.workflow, value.number, value.size))


class StepResults(Generic[R]):
    """The results of a step of many jobs, in the order of `map`. They are read in pages, each time it is iterated.

    Jobs that did not succeed are left out. Iterating raises BrokerError, and WrongState for a result that was lost.
    """

    def __init__(self, backend: str, workflow: str, *members: range) -> None:
        self._backend, self._workflow = backend, workflow
        self._members = members  # their numbers, of each step

    def __iter__(self) -> Iterator[R]:
        numbers = chain.from_iterable(self._members)
        while page := list(islice(numbers, PAGE)):
            with noting_outage():
                results = read_results(self._backend, self._workflow, page)
            for result in results:
                if result is not _LOST:
                    yield result

    def __repr__(self) -> str:
        return f"<results of up to {sum(map(len, self._members))} jobs of workflow {self._workflow}>"


def read_results(backend: str, workflow: str, numbers: list[int]) -> list[Any]:
    """The results of these members. What did not succeed is _LOST. Raises BrokerError and WrongState."""
    store = workflow_store(get_broker(place_of_job(backend, workflow.partition("+")[0])))
    outcomes = store.outcomes(workflow, numbers) if numbers else []
    found = [{"result": _LOST} if outcome is None else serializer.loads(outcome) for outcome in outcomes]
    for number, values in zip(numbers, found, strict=True):
        if "result" not in values:
            raise WrongState(f"{number} of workflow {workflow}", "succeeded, but its result was lost with its process.")
    return [values["result"] for values in found]


def resolve(backend: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with results in the places of their references. Raises BrokerError and WrongState."""
    single = sorted({(each.workflow, each.number) for each in references_in((args, kwargs)) if each.size < 0})
    found = {place: read_results(backend, place[0], [place[1]])[0] for place in single}
    for (workflow, number), value in found.items():
        if value is _LOST:
            raise WrongState(f"{number} of workflow {workflow}", "has no result, and another job takes it.")
    args, kwargs = _replaced([list(args), kwargs], backend, found)
    return args, kwargs


def references_in(value: Any) -> Iterator[ResultOf]:
    """The results that arguments of a call name, at any depth."""
    if type(value) is ResultOf:
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from references_in(item)
    elif isinstance(value, dict):
        yield from references_in(list(value.values()))


def _replaced(value: Any, backend: str, found: dict[tuple[str, int], Any]) -> Any:
    if type(value) is ResultOf:
        if value.size >= 0:
            return StepResults(backend, value.workflow, range(value.number, value.number + value.size))
        return found[value.workflow, value.number]
    if isinstance(value, list | tuple):
        return [_replaced(item, backend, found) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, backend, found) for key, item in value.items()}
    return value
