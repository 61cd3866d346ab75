"""The result of a job of a workflow, as an argument of a later one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

from django_rtq.core.jobs import serializer
from django_rtq.exceptions import InvalidWorkflow

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
