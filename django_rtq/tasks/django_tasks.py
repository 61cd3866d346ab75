"""Tasks of this package and the backends of django.tasks in TASKS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django_rtq.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


def on_backend(task: Task[P, R_co], alias: str) -> Task[P, R_co]:
    """A copy of the task whose jobs go to the Redis of a backend in TASKS."""
    copy = task.using()
    object.__setattr__(copy, "backend", alias)
    return copy


def as_django_task(task: Task[Any, Any]) -> Any:
    """The task as a task of django.tasks, for the first of our backends in TASKS.

    Raises ConfigurationError if there is none, and InvalidTask of django.tasks.
    """
    try:
        from django.tasks import task_backends
    except ImportError:
        try:
            from django_tasks import task_backends  # type: ignore[assignment]
        except ImportError as error:
            raise ConfigurationError(
                "enqueue() needs django.tasks: Django 6, or the package django-tasks. Without it, use delay()."
            ) from error
    for backend in task_backends.all():
        if hasattr(backend, "adopt"):
            return backend.adopt(task)
    raise ConfigurationError(
        'enqueue() needs a backend of this package. Write TASKS = {"default": {"BACKEND": '
        '"django_rtq.backend.RTQBackend"}}, or use delay().'
    )
