"""Finds the backend of django.tasks through which a task of this package is enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django_rtq.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task


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
