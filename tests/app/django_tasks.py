"""Tasks of django.tasks, in a module that workers do not import at their start."""

import asyncio
import os
import sys

from django.dispatch import receiver

from django_rtq import current_job
from tests.app import journal, tasks

try:
    from django.tasks import TaskContext, task
    from django.tasks.signals import task_finished, task_started
except ImportError:
    from django_tasks import TaskContext, task
    from django_tasks.signals import task_finished, task_started


@receiver(task_started)
def note_start(task_result, **kwargs):
    if journal.FILE in os.environ:
        journal.write("task_started", task_result.id)


@receiver(task_finished)
def note_end(task_result, **kwargs):
    if journal.FILE in os.environ:
        error = sys.exc_info()[0]
        journal.write("task_finished", f"{task_result.id}-{task_result.status}-{error and error.__name__}")


@task
def add(a, b=0):
    return a + b


@task(queue_name="other", priority=7)
def note(name):
    journal.write("start", name)
    return {"name": name, "at": (1, 2)}


@task
async def add_later(a, b):
    await asyncio.sleep(0)
    return a + b


@task(takes_context=True)
def attempt_of(context, name=""):
    assert isinstance(context, TaskContext)
    result = context.task_result
    return [context.attempt, result.id, result.status, result.args, current_job().job_id]


@task
def fail(text):
    raise ValueError(text)


@task
def fail_until(attempt):
    if current_job().attempt < attempt:
        raise KeyError(f"attempt {current_job().attempt}")
    return current_job().attempt


@task
def gate(name, gate):
    tasks.gate.func(name, gate)
