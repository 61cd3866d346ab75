"""Fixtures: real workers, and what Django's signals said."""

import pytest

from django_rtq.backend.compat import task_enqueued, task_finished, task_started
from tests.worker.conftest import databases_of_the_session, journal, rtq_worker  # noqa: F401


@pytest.fixture
def told():
    """Name of the signal, sender and result of each signal of django.tasks in this process."""
    found, receivers = [], []
    for name, signal in (("enqueued", task_enqueued), ("started", task_started), ("finished", task_finished)):

        def note(sender, task_result, name=name, **kwargs):
            found.append((name, sender, task_result))

        receivers.append((signal, note))
        signal.connect(note)
    yield found
    for signal, note in receivers:
        signal.disconnect(note)
