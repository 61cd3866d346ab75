"""The queues that workers are expected to serve."""

import pytest
from django.test import override_settings

from django_rtq.core.tasks import registry
from django_rtq.core.tasks.registry import declared_queues
from django_rtq.core.tasks.task import Task


def remind():
    """Nothing."""


def test_the_default_queue_is_expected_if_a_task_uses_it(monkeypatch):
    task = Task(func=remind, name="shop.tasks.remind")
    monkeypatch.setattr(registry, "_tasks", {task.name: task})
    assert declared_queues() == ["default"]

    named = Task(func=remind, name="shop.tasks.remind", queue_name="orders")
    monkeypatch.setattr(registry, "_tasks", {named.name: named})
    assert declared_queues() == ["orders"]
    with override_settings(RTQ={"DEFAULT_QUEUE": "mail", "QUEUES": {"bulk": {}}}):
        assert declared_queues() == ["bulk", "orders"]


@pytest.mark.parametrize(
    ("options", "queues"), [({}, ["default"]), ({"QUEUES": {"default": {}, "bulk": {}}}, ["bulk", "default"])]
)
def test_it_is_expected_if_no_queue_is_named_at_all_or_the_settings_name_it(monkeypatch, options, queues):
    monkeypatch.setattr(registry, "_tasks", {})
    with override_settings(RTQ=options):
        assert declared_queues() == queues
