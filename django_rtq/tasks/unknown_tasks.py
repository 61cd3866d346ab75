"""Warns while DEBUG is on about jobs of tasks that workers do not know."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.apps import apps

from django_rtq.conf.config import get_config, is_debug, task_modules
from django_rtq.tasks import registry
from django_rtq.under_test import is_under_test

if TYPE_CHECKING:
    from django_rtq.tasks.task import Task

logger = logging.getLogger("django_rtq")

_warned: set[str] = set()  # names of tasks


def warn_if_unknown_to_workers(task: Task[Any, Any]) -> None:
    """Log a warning, once for each task, if its module was not imported when Django started, or django_rtq is no app.

    Workers import nothing later, except for the modules of installed apps.
    """
    if task.internal or not registry.is_late(task.name) or task.name in _warned or not is_debug() or is_under_test():
        return
    if not apps.is_installed("django_rtq"):
        _warned.add(task.name)
        logger.warning(
            'A job of %s was sent, but "django_rtq" is missing in INSTALLED_APPS: tasks are not imported when Django '
            "starts, and manage.py has no command rtq_worker to run them. Add it. This warning comes once for each "
            "task, and only while DEBUG is on.",
            task.name,
        )
        return
    module = task.func.__module__
    if registry.is_in_installed_app(module):
        return
    _warned.add(task.name)
    logger.warning(
        "A job of %s was sent, but workers do not know this task: its module %s is not imported when Django starts. "
        'The job waits for a worker that knows it, and is dead after RTQ["UNKNOWN_TASK_TIMEOUT"], %g s. Move the task '
        'to the module %r of an app, import %s there, or add its name to RTQ["TASK_MODULES"]. This warning comes once '
        "for each task, and only while DEBUG is on.",
        task.name, module, get_config().unknown_task_timeout, " or ".join(task_modules()), module,
    )  # fmt: skip
