"""django.tasks of Django 6, or the package django-tasks on Django 5.2: the same API, but other classes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, TaskContext, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError, TaskResult
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.tasks.signals import log_task_enqueued, logger, task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    TaskResultStatus: Any  # the stubs have no type for its members
    DjangoTask: TypeAlias = Task[Any, Any]
    DjangoResult: TypeAlias = TaskResult[Any, Any]
    DjangoContext: TypeAlias = TaskContext[Any, Any]
    django_task: Any  # typed in rtq_task.py
else:
    try:
        from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, TaskResultStatus, task_backends
        from django.tasks import TaskContext as DjangoContext
        from django.tasks import task as django_task
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.base import Task as DjangoTask
        from django.tasks.base import TaskError
        from django.tasks.base import TaskResult as DjangoResult
        from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
        from django.tasks.signals import log_task_enqueued, logger, task_enqueued, task_finished, task_started
        from django.utils.json import normalize_json
    except ImportError:
        from django_tasks import DEFAULT_TASK_BACKEND_ALIAS, TaskResultStatus, task_backends
        from django_tasks import TaskContext as DjangoContext
        from django_tasks import task as django_task
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import Task as DjangoTask
        from django_tasks.base import TaskError
        from django_tasks.base import TaskResult as DjangoResult
        from django_tasks.exceptions import InvalidTaskError as InvalidTask
        from django_tasks.exceptions import TaskResultDoesNotExist
        from django_tasks.signals import log_task_enqueued, logger, task_enqueued, task_finished, task_started
        from django_tasks.utils import normalize_json

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "BaseTaskBackend",
    "DjangoContext",
    "DjangoResult",
    "DjangoTask",
    "InvalidTask",
    "TaskError",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "django_task",
    "has_receivers",
    "log_task_enqueued",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]


def has_receivers() -> bool:
    """Whether task_enqueued has a receiver beside Django's own, which logs if the level of the log is DEBUG.

    To send a signal takes longer than to find that out.
    """
    receivers = task_enqueued.receivers
    return len(receivers) != 1 or receivers[0][0][0] != _LOG or logger.isEnabledFor(logging.DEBUG)


_LOG = id(log_task_enqueued)
