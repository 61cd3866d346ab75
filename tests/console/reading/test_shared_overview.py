"""The overview that viewers share."""

import pytest

from django_rtq.console.reading import overview as shared_overview
from django_rtq.console.reading.overview import OverviewReader
from django_rtq.exceptions import BrokerUnavailable
from tests.support.jobs import QUEUE, queued_job


@pytest.fixture
def shared(broker, readers):
    broker.register_queues([QUEUE])
    return readers.shared_overview


def test_within_a_second_it_is_read_once(shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 1000.0)

    first = shared.read()
    assert shared.read() is first
    assert shared.read(fresh=True) is not first


def test_after_that_it_is_read_again(broker, shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(shared_overview, "REST", 0)
    shared.read()
    queued_job(broker)

    assert [row.details.queued for row in shared.read().queues] == [1]


def test_one_that_takes_long_is_kept_for_longer(shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(shared_overview, "REST", 1e6)

    assert shared.read() is shared.read()


def test_an_error_is_shared_too_and_then_forgotten(shared, monkeypatch):
    monkeypatch.setattr(shared_overview, "SHARED_SECONDS", 1000.0)
    asked = []

    def fail(self):
        asked.append(1)
        raise BrokerUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(OverviewReader, "read", fail)
        for _ in range(2):
            with pytest.raises(BrokerUnavailable):
                shared.read()
    assert len(asked) == 1
    assert [row.details.name for row in shared.read(fresh=True).queues] == [QUEUE]
