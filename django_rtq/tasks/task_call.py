"""Calls of delay() and its kin on their way through RTQ["MIDDLEWARE"]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django_rtq.conf import get_config
from django_rtq.handle import JobHandle
from django_rtq.middleware.chain import wrap
from django_rtq.tasks.enqueuing import send

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

Arguments = tuple[Sequence[Any], dict[str, Any]]
Handles = list[JobHandle[Any]]


@dataclass(slots=True, kw_only=True)
class TaskCall:
    """What middleware gets for one delay() or delay_many(). It may change all attributes before it passes it on."""

    task: Task[Any, Any]  # with the options of using()
    arguments: list[Arguments]  # (args, kwargs) for each job
    headers: dict[str, Any]  # of all these jobs
    _send: Callable[[Task[Any, Any], Iterable[Arguments]], Handles] = field(default=send, repr=False)

    def send(self) -> Handles:
        """Enqueue the jobs."""
        task = self.task
        if self.headers != task.headers:
            task = task.using(headers=None).using(headers=self.headers)
        return self._send(task, self.arguments)


def uses_middleware(task: Task[Any, Any]) -> bool:
    """Whether calls of this task have to go through middleware."""
    return bool(get_config().middleware) and not task.internal


def send_through_middleware(
    task: Task[Any, Any],
    arguments: Iterable[Arguments],
    send: Callable[[Task[Any, Any], Iterable[Arguments]], Handles] = send,
) -> Handles:
    """Enqueue jobs inside the middleware. Raises what delay() and the middleware raise, and ConfigurationError."""
    call = TaskCall(task=task, arguments=list(arguments), headers=dict(task.headers), _send=send)
    return _checked(_chain(get_config().middleware)(call), call)


@lru_cache(maxsize=8)
def _chain(paths: tuple[str, ...]) -> Callable[[TaskCall], Any]:
    return wrap(paths, "enqueue", TaskCall.send)


def _checked(handles: Any, call: TaskCall) -> Handles:
    if not isinstance(handles, list) or len(handles) != len(call.arguments):
        raise TypeError(
            f'RTQ["MIDDLEWARE"]: the middleware around delay() of {call.task.name} returned {handles!r}, but has to '
            "return what enqueue(call) returned."
        )
    return handles
