"""RTQTask: what @django.tasks.task makes of a function when the backend is ours.

Beside it there is a task of this package, `rtq_task`: that is what workers run, and what pages and commands show
(D66).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Literal, Protocol, overload

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq.backend.compat import BaseTaskBackend, DjangoTask, django_task, task_backends
from django_rtq.core.broker.task_backends import backends_in, is_in
from django_rtq.core.extension import no_attribute
from django_rtq.core.schedules import Schedule
from django_rtq.core.tasks.enqueuing import Arguments, EnqueueMethods, Handles
from django_rtq.core.tasks.task import Task

if TYPE_CHECKING:
    from django.tasks import TaskContext
    from typing_extensions import ParamSpec, TypeVar, Unpack

    from django_rtq.core.tasks.options.types import DeclarationOptions, UsingOptions

    P = ParamSpec("P", default=...)
    R_co = TypeVar("R_co", covariant=True, default=Any)

    class DjangoTaskOptions(DeclarationOptions, total=False):
        """Options that @task of django.tasks takes with our backend, beside takes_context. For type checkers."""

        backend: str
        aliases: Sequence[str]

    class DjangoUsingOptions(UsingOptions, total=False):
        """Options that using() of its tasks takes."""

        backend: str

else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class RTQTask(EnqueueMethods[P, R_co], DjangoTask):
    """A task of django.tasks with the options of django_rtq.task. Also has delay() and its kin.

    An option that is None has the value in OPTIONS of the backend, or its default.
    """

    client: str | Callable[..., Any] | None = field(default=None, hash=False)
    max_attempts: int | None = None
    max_crashes: int | None = None
    backoff: Any = field(default=None, hash=False)
    retry_on: Any = field(default=None, hash=False)
    give_up_on: Any = field(default=None, hash=False)
    time_limit: float | None = None  # seconds
    expires: Any = None
    at_front: bool | None = None
    result_ttl: float | None = None  # seconds
    exactly_once: bool | str | None = None
    schedule: Schedule | Sequence[Schedule] | None = field(default=None, hash=False)
    unique: Any = field(default=None, hash=False)
    unique_until: str | None = None
    unique_seconds: float | None = None
    unique_on_conflict: str | None = None
    on_commit: bool | str | None = None
    headers: Mapping[str, Any] | None = field(default=None, hash=False)
    aliases: Sequence[str] | None = field(default=None, hash=False)

    def __new__(cls, **options: Any) -> RTQTask[P, R_co]:
        """Raises TypeError for an option that it does not have, with what to write instead."""
        if unknown := options.keys() - cls.__dataclass_fields__:
            from django_rtq.compat.other_queues import option_cure

            name = min(unknown)
            cure = option_cure(name, cls.__dataclass_fields__.keys())
            raise TypeError(f"A task of django.tasks does not take {name!r}. {cure}")
        return super().__new__(cls)

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> Any:
            raise no_attribute(self, self._path, name)

    def __post_init__(self) -> None:
        DjangoTask.__post_init__(self)
        _ = self.rtq_task  # made here, so that invalid options raise at import time and workers know the task

    @cached_property
    def rtq_task(self) -> Task[P, Any, R_co]:
        """The task that workers run. A copy of using() has the registered one, with what was changed."""
        backend: Any = self.get_backend()  # an RTQBackend, whose module imports this one
        task: Task[P, Any, R_co] = backend.rtq_task_of(self)
        return task

    def get_backend(self) -> BaseTaskBackend:
        """Its backend, the same in all threads. Raises InvalidTaskBackend."""
        return _backend_of(self.backend)

    @property
    def rtq_options(self) -> dict[str, Any]:
        """The options that were given, without those of Django."""
        given = {name: getattr(self, name) for name in RTQ_OPTIONS}
        return {name: value for name, value in given.items() if value is not None}

    def using(self, **options: Unpack[DjangoUsingOptions]) -> RTQTask[P, R_co]:  # type: ignore[override]
        """A copy with other options: those of Django, and RTQ_OPTIONS. `run_after` may be a timedelta or seconds.

        As in Django, None changes nothing. Headers are added to those of the task. Raises TypeError for an unknown
        option, and InvalidTask.
        """
        if isinstance(options.get("headers"), Mapping):
            options["headers"] = {**(self.headers or {}), **(options["headers"] or {})}
        changed: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        return replace(self, **changed)

    def _send(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        return self.rtq_task._send(arguments, all_or_none)

    async def _asend(self, arguments: Iterable[Arguments], all_or_none: bool = False) -> Handles:
        return await self.rtq_task._asend(arguments, all_or_none)

    def _on_commit(self) -> Task[P, Any, R_co]:
        return self.rtq_task._on_commit()


#: The options of django_rtq.task that RTQTask has beside those of Django.
RTQ_OPTIONS = tuple(each.name for each in fields(RTQTask) if each.name not in DjangoTask.__dataclass_fields__)


class _ContextDecorator(Protocol):
    """@task(takes_context=True), for type checkers."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext[Any, Any], P], Coroutine[Any, Any, R]], /
    ) -> RTQTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext[Any, Any], P], R], /) -> RTQTask[P, R]: ...


class _TaskDecorator(Protocol):
    """@task of django.tasks with our backend, for type checkers."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> RTQTask[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> RTQTask[P, R]: ...

    @overload
    def __call__(
        self, /, *, takes_context: Literal[True], **options: Unpack[DjangoTaskOptions]
    ) -> _ContextDecorator: ...

    @overload
    def __call__(
        self, /, *, takes_context: Literal[False] = ..., **options: Unpack[DjangoTaskOptions]
    ) -> _TaskDecorator: ...


task: _TaskDecorator = django_task


def task_in(task: RTQTask, place: str) -> RTQTask:
    """The task as it was enqueued, if its job is in another Redis than that of the backend it was declared for."""
    if is_in(task.backend, place):
        return task
    others = backends_in(place)
    return task.using(backend=others[0]) if others else task


@cache
def _backend_of(alias: str) -> BaseTaskBackend:
    return task_backends[alias]  # makes one for each thread, which takes a while


@receiver(setting_changed)
def forget_backends(*, setting: str, **kwargs: object) -> None:
    """Read the settings again when a test overrides them."""
    if setting == "TASKS":
        _backend_of.cache_clear()
