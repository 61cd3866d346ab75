"""django.tasks of Django 6, or the package django-tasks on Django 5.2: the same API, but other classes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeAlias

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django import tasks
    from django.tasks import base, exceptions, signals
    from django.tasks.backends import base as backends
    from django.utils import json
else:
    import django_tasks as tasks
    from django_tasks import base, exceptions, signals
    from django_tasks import utils as json
    from django_tasks.backends import base as backends

if TYPE_CHECKING:
    TaskResultStatus: Any  # the stubs have no type for its members
    DjangoTask: TypeAlias = base.Task[Any, Any]
    DjangoResult: TypeAlias = base.TaskResult[Any, Any]
    DjangoContext: TypeAlias = base.TaskContext[Any, Any]
    django_task: Any  # typed in rtq_task.py
else:
    TaskResultStatus, django_task = tasks.TaskResultStatus, tasks.task
    DjangoTask, DjangoResult, DjangoContext = base.Task, base.TaskResult, base.TaskContext

BaseTaskBackend = backends.BaseTaskBackend
TaskError = base.TaskError
DEFAULT_TASK_BACKEND_ALIAS, task_backends = tasks.DEFAULT_TASK_BACKEND_ALIAS, tasks.task_backends
InvalidTask: type[Exception] = getattr(exceptions, "InvalidTask", None) or vars(exceptions)["InvalidTaskError"]
TaskResultDoesNotExist, normalize_json = exceptions.TaskResultDoesNotExist, json.normalize_json
task_enqueued, task_started, task_finished = signals.task_enqueued, signals.task_started, signals.task_finished


def has_receivers() -> bool:
    """Whether task_enqueued has a receiver beside Django's own, which logs if the level of the log is DEBUG.

    To send a signal takes longer than to find that out.
    """
    receivers = task_enqueued.receivers
    return len(receivers) != 1 or receivers[0][0][0] != _LOG or signals.logger.isEnabledFor(logging.DEBUG)


_LOG = id(signals.log_task_enqueued)
