"""Methods of a task can be replaced in tests; its options stay as declared."""

import asyncio
from dataclasses import FrozenInstanceError
from unittest import mock

import pytest

from django_rtq import Task
from tests.app.tasks import note

METHODS = ["delay", "adelay", "delay_many", "adelay_many", "using"]


@pytest.mark.parametrize("method", METHODS)
def test_mock_patch_replaces_a_method_for_a_while(method):
    with mock.patch(f"tests.app.tasks.note.{method}") as replaced:
        called = getattr(note, method)("a", number=2)
        replaced.assert_called_once_with("a", number=2)
        if method in ("adelay", "adelay_many"):
            asyncio.run(called)

    assert getattr(note, method).__func__ is getattr(Task, method)


def test_a_copy_has_the_methods_of_its_class():
    with mock.patch.object(note, "delay"):
        assert note.using(priority=5).delay.__func__ is Task.delay


@pytest.mark.parametrize("name", ["func", "queue_name", "priority", "client", "unique", "name", "queue", "new_option"])
def test_options_and_properties_cannot_be_changed(name):
    before = getattr(note, name, None)
    with pytest.raises(FrozenInstanceError):
        setattr(note, name, "other")
    with pytest.raises(FrozenInstanceError):
        delattr(note, name)
    assert getattr(note, name, None) is before
