"""Calls of delay() and its kin on their way through RTQ["MIDDLEWARE"]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from django_rtq.conf.config import get_config
from django_rtq.handle import JobHandle
from django_rtq.middleware import can_wrap, wrap
from django_rtq.tasks.enqueuing import asend, send, waits_by_default
from django_rtq.transactions.rules import database_to_await, outbox_database

if TYPE_CHECKING:
    from django_rtq.schedules import Schedule
    from django_rtq.tasks.task import Task

Arguments = tuple[Sequence[Any], dict[str, Any]]
Handles = list[JobHandle[Any]]


@dataclass(slots=True, kw_only=True)
class TaskCall:
    """What middleware gets for one delay() or delay_many(). It may change all attributes before it passes it on."""

    task: Task[Any, Any]  # with the options of using()
    arguments: list[Arguments]  # (args, kwargs) for each job
    headers: dict[str, Any]  # of all these jobs
    schedule: Schedule | None = None  # that fires; None: somebody calls delay()
    _send: Callable[[Task[Any, Any], Iterable[Arguments]], Any] = field(default=send, repr=False)

    def send(self) -> Any:
        """Enqueue the jobs. Returns their handles; for a coroutine, what it has to await."""
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
    schedule: Schedule | None = None,
) -> Handles:
    """Enqueue jobs inside the middleware. Raises what delay() and the middleware raise, and ConfigurationError."""
    call = TaskCall(task=task, arguments=list(arguments), headers=dict(task.headers), schedule=schedule, _send=send)
    return _checked(_chain(get_config().middleware)(call), call)


async def asend_call(task: Task[Any, Any], arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """Enqueue jobs from a coroutine, inside of middleware if there is any. Raises what delay() raises."""
    waits = database_to_await(task.on_commit) is not None or waits_by_default(task)
    if waits or outbox_database() is not None:
        # Django keeps the connections of async code, and their transactions, in the thread-sensitive thread.
        return await sync_to_async(send_call, thread_sensitive=True)(task, arguments, all_or_none)
    if not uses_middleware(task):
        return await asend(task, arguments, all_or_none)
    chain = _async_chain(get_config().middleware)
    if chain is None:
        return await sync_to_async(send_call, thread_sensitive=False)(task, arguments, all_or_none)
    send_them = partial(asend, all_or_none=all_or_none)
    call = TaskCall(task=task, arguments=list(arguments), headers=dict(task.headers), _send=send_them)
    return _checked(await chain(call), call)


def send_call(task: Task[Any, Any], arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
    """Enqueue jobs, inside of middleware if there is any. Raises what delay() raises."""
    if uses_middleware(task):
        return send_through_middleware(task, arguments, partial(send, all_or_none=all_or_none))
    return send(task, arguments, all_or_none)


@lru_cache(maxsize=8)
def _async_chain(paths: tuple[str, ...]) -> Callable[[TaskCall], Any] | None:
    """None: some of the middleware is for threads only."""
    return wrap(paths, "enqueue", _asend) if can_wrap(paths, "enqueue", is_async=True) else None


async def _asend(call: TaskCall) -> Handles:
    handles: Handles = await call.send()
    return handles


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
