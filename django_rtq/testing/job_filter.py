"""Compares captured jobs with what a test expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django_rtq.core.jobs import serializer
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.calls import client_name, signature_of
from django_rtq.core.tasks.options.kinds import Moment, moment_argument
from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import Unserializable
from django_rtq.testing.captured_job import CapturedJob, call_text, read_moment

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ExpectedJob(TypedDict, total=False):
    """What can be compared of a job."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    client: str | int | UUID | None
    queue: str
    run_after: Moment | None
    headers: Mapping[str, Any]


class JobFilter:
    """What a job has to have. Raises TypeError for arguments that do not match the signature of the task."""

    def __init__(self, task: Task[Any, Any] | str | None, **expected: Unpack[ExpectedJob]) -> None:
        if unknown := expected.keys() - ExpectedJob.__optional_keys__:
            raise TypeError(f"{min(unknown)!r} cannot be compared. Use: {', '.join(ExpectedJob.__annotations__)}.")
        self._task = task.name if isinstance(task, Task) else task
        owner = self._task or "a job"
        self._is_call_compared = "args" in expected or "kwargs" in expected
        self._args = expected.get("args", ())
        self._kwargs = expected.get("kwargs", {})
        if self._is_call_compared:
            if self._task is None:
                raise TypeError("args and kwargs can be compared for one task only: name it.")
            self._call = self._bound(self._task, self._args, self._kwargs)
        given: dict[str, Any] = {**expected}
        self._details = {name: read(owner, given[name]) for name, read in _READERS.items() if name in given}

    def matches(self, job: CapturedJob) -> bool:
        """Whether the job is one of these."""
        if self._task is not None and job.task != self._task:
            return False
        if any(getattr(job, name) != value for name, value in self._details.items()):
            return False
        return not self._is_call_compared or self._bound(job.task, job.args, job.kwargs) == self._call

    def __str__(self) -> str:
        if self._task is None:
            text = "A job"
        else:
            text = call_text(self._task, self._args, self._kwargs) if self._is_call_compared else self._task
        details = ", ".join(f"{name} {value!r}" for name, value in self._details.items())
        return f"{text} with {details}" if details else text

    def _bound(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The arguments by the names of the parameters, with defaults."""
        declared = registry.known_task(task)
        if declared is None:
            return _as_json(args), _as_json(kwargs)
        signature = signature_of(declared.func, takes_context=declared.takes_context)
        signature.check(args, dict(kwargs))
        return {name: _as_json(value) for name, value in signature.named(args, dict(kwargs)).items()}


def _as_json(value: Any) -> Any:
    """The value as a task gets it: a tuple becomes a list. A default may be anything, and stays as it is."""
    try:
        return serializer.loads(serializer.dumps(value))
    except Unserializable:
        return value


#: How what is expected is compared with a job.
_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "client": lambda owner, client: client_name(f"{owner}: client", client),
    "queue": lambda owner, queue: queue,
    "run_after": lambda owner, moment: read_moment(moment_argument(owner, "run_after", moment)),
    "headers": lambda owner, headers: _as_json(dict(headers)),
}
