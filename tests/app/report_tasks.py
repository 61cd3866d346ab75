"""Tasks for a backend with a Redis of its own. Import it where TASKS has "reports"."""

from tests.app import django_tasks as with_receivers  # noqa: F401
from tests.app import journal, tasks

try:
    from django.tasks import TaskContext, task
except ImportError:
    from django_tasks import TaskContext, task


@task(backend="reports", queue_name="reports")
def build(name):
    journal.write("start", name)
    return f"{name} is built"


@task(backend="reports", queue_name="reports")
def order(name):
    """Enqueues a job for each door: of a task of this package, and of its own backend."""
    tasks.note.delay(name)
    return build.enqueue(name).id


@task(backend="reports", queue_name="reports", takes_context=True)
def look(context):
    assert isinstance(context, TaskContext)
    result = context.task_result
    result.refresh()
    return [result.backend, result.status]


@task(backend="reports", queue_name="reports")
def fail(text):
    raise ValueError(text)
