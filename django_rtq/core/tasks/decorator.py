"""@task: declares a function as a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from django_rtq.core.tasks import registry
from django_rtq.core.tasks.task import OPTIONS, SHARED_NAMES, TASK_NAMES, Task, check_names

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from django_rtq.core.jobs.context import Call
    from django_rtq.core.tasks.options.types import SharedOptions, TaskOptions

P = ParamSpec("P")
R = TypeVar("R")


class ContextDecorator(Protocol):
    """@task(takes_context=True), for type checkers."""

    # Callers do not pass the context. Its type is Any, because tests may pass their own.
    @overload
    def __call__(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, Coroutine[Any, Any, R], R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Any, P], R], /) -> Task[P, R]: ...


class TaskDecorator:
    """Make a function a task: ``@task``, or ``@task(queue_name="mail", max_attempts=3, …)``.

    Its options are in docs/tasks.md, and below as help() shows them. Raises InvalidTask.
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self._shared = shared  # options of all tasks that it declares

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, Coroutine[Any, Any, R], R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def __call__(self, /, *, takes_context: Literal[True], **options: Unpack[TaskOptions]) -> ContextDecorator: ...

    @overload
    def __call__(self, /, *, takes_context: Literal[False] = ..., **options: Unpack[TaskOptions]) -> TaskDecorator: ...

    # Its jobs take any arguments, and each has a result of its own, or None.
    @overload
    def __call__(
        self, /, *, batch: int, **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[[Sequence[Call]], Any]], Task[..., Any]]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a task. Raises InvalidTask."""
        check_names("@task", options, TASK_NAMES)
        options = {**self._shared, **options}
        if function is None:
            return TaskDecorator(options)
        declared: Task[Any, Any] = Task(func=function, **options)
        registry.register(declared)
        return declared

    def with_options(self, **options: Unpack[SharedOptions]) -> TaskDecorator:
        """A decorator for several tasks: ``mail_task = task.with_options(queue_name="mail", max_attempts=3)``.

        It is used as @task. Options that a task gives itself replace these. Raises InvalidTask.
        """
        check_names("with_options()", options, SHARED_NAMES)
        return TaskDecorator({**self._shared, **options})

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._shared.items())
        return f"<@task{options}>"


# The options and what they do, in the order of their declaration.
_described = (f"{name:<20}{declared.says}" for name, declared in OPTIONS.items() if name in TASK_NAMES)
TaskDecorator.__doc__ = "\n".join([f"{inspect.getdoc(TaskDecorator)}\n", *_described])
task = TaskDecorator({})


def internal_task(func: Callable[P, R]) -> Task[P, R]:
    """Make a function a task of this package. Its jobs run before all others of their queue."""
    name = f"{registry.INTERNAL}.{func.__name__}"
    declared = Task(func=func, name=name, priority=100, on_commit=False, internal=True)
    registry.register(declared)
    return declared
