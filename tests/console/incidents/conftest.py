"""What tests of incidents share."""

import pytest


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The queues that tasks declare."""
    names = ["low", "mail"]
    monkeypatch.setattr("django_rtq.console.incidents.workers.declared_queues", lambda place: names)
    return names
