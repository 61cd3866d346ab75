"""Packages that import django_tasks, on Django 6: their tasks run with this backend, with Django's own classes."""

import pytest

package = pytest.importorskip("django_tasks")
django_tasks = pytest.importorskip("django.tasks")


def add(a, b):
    return a + b


def test_their_tasks_are_enqueued_and_have_results(broker):
    declared = package.task_backends["default"].task_class
    assert issubclass(declared, django_tasks.Task)
    task = package.task(queue_name="default")(add)
    result = task.enqueue(1, b=2)

    assert isinstance(result, django_tasks.TaskResult)
    assert result.status == django_tasks.TaskResultStatus.READY
    assert package.task_backends["default"].get_result(result.id) == result


def test_exceptions_are_those_of_django(broker):
    with pytest.raises(django_tasks.exceptions.TaskResultDoesNotExist):
        package.task_backends["default"].get_result("unknown")
