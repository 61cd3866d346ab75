"""@task: declares a function as a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from django_rtq.exceptions import InvalidTask
from django_rtq.tasks import registry
from django_rtq.tasks.options.types import SHARED_NAMES, TASK_NAMES, USING_NAMES, SharedOptions, TaskOptions
from django_rtq.tasks.task import Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator:
    """Make a function a task: ``@task``, or ``@task(queue_name="mail", max_attempts=3, …)``.

    queue_name          queue of the jobs
    client              client (tenant) of the job: a string, or a function that gets the arguments of the call by name
    priority            -100 to 100; higher priorities run first
    max_attempts        failed runs (exception or timeout) after which a job is dead
    max_crashes         runs that may end with their process before a job is dead
    backoff             seconds between attempts: a number, a list, or a function of the number of failures
    retry_on            exception classes that are retried (default: all)
    give_up_on          exception classes after which a job is dead at once
    time_limit          seconds that a run may take
    expires             a job that has not started by then never runs: seconds, timedelta, or aware datetime
    at_front            put jobs before the other jobs of their client
    takes_context       pass a JobContext as the first argument, `context`
    exactly_once        True, or an alias of DATABASES: run in a transaction that also commits the job's id, so that a
                        second run changes nothing
    result_ttl          seconds that results are kept; 0: not at all
    keep_args           keep the arguments with the result, for operators (default: RTQ["KEEP_ARGS"])
    schedule            cron(…) or every(…), or a list of them: periodic jobs
    unique              no second job with the same arguments at a time: True, a list of the names of the arguments to
                        compare, or a function that gets the arguments by name and returns what to compare
    unique_until        "done", or "start": a second job is accepted while the first one runs
    unique_seconds      the uniqueness ends after this time, counted from when the job is ready (default: a day)
    unique_on_conflict  for a second call: "return" the first job, "raise" DuplicateJob, "replace" the arguments and
                        the time of the first while it waits, or "rerun": run once more after the first, if it runs

    name                the name by which workers find the task (default: module and name of the function)
    aliases             other names: of jobs that were enqueued before the task was renamed

    Raises InvalidTask.
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self._shared = shared  # options of all tasks that it declares

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    # Callers do not pass the context. Its type is Any, because tests may pass their own.
    @overload
    def __call__(
        self, /, *, takes_context: Literal[True], **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[Concatenate[Any, P], R]], Task[P, R]]: ...

    @overload
    def __call__(
        self, /, *, takes_context: Literal[False] = ..., **options: Unpack[TaskOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Declare a function as a task. Raises InvalidTask."""
        if unknown := options.keys() - TASK_NAMES:
            raise _unknown_option("@task", unknown, TASK_NAMES)

        def declare(func: Callable[..., Any]) -> Task[Any, Any]:
            declared: Task[Any, Any] = Task(func=func, **{**self._shared, **options})
            registry.register(declared)
            return declared

        return declare if function is None else declare(function)

    def with_options(self, **options: Unpack[SharedOptions]) -> TaskDecorator:
        """A decorator for several tasks: ``mail_task = task.with_options(queue_name="mail", max_attempts=3)``.

        It is used as @task. Options that a task gives itself replace these. Raises InvalidTask.
        """
        if unknown := options.keys() - SHARED_NAMES:
            raise _unknown_option("with_options()", unknown, SHARED_NAMES)
        return TaskDecorator({**self._shared, **options})

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._shared.items())
        return f"<@task{options}>"


def _unknown_option(owner: str, names: Set[str], allowed: Set[str]) -> InvalidTask:
    name = min(names & (USING_NAMES - TASK_NAMES), default=min(names))
    cure = f"It takes: {', '.join(sorted(allowed))}."
    if name in USING_NAMES:
        cure = f"Use .using({name}=…)."
    elif name in TASK_NAMES:
        cure = f"Use @task({name}=…)."
    return InvalidTask(f"{owner} does not take {name!r}. {cure}")


task = TaskDecorator({})
