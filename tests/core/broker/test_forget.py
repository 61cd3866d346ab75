"""A queue without jobs, workers and outcomes can be forgotten, and comes back when it is used."""

import pytest

from django_rtq.core.broker.worker_broker import WorkerBroker
from tests.support.jobs import (
    QUEUE,
    dead_job,
    new_job,
    queued_job,
    scheduled_job,
    unique_job,
)
from tests.support.snapshots import changes, snapshot


@pytest.fixture
def empty(broker, readers):
    """A queue that had jobs, all of which were purged."""
    queued_job(broker, client="acme", priority=5)
    scheduled_job(broker)
    while readers.sweeps.purge_some(QUEUE, None):
        pass


def names(redis):
    return {name.decode() for name in redis.smembers("rtq:queues")}


def test_a_dry_run_says_what_would_be_and_changes_nothing(redis, broker, empty):
    dead_job(broker, queue="used")
    before = snapshot(redis)

    answers = [broker.forget(queue, is_dry_run=True) for queue in (QUEUE, QUEUE, "used")]

    assert answers == ["forgotten", "forgotten", "jobs"]
    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda broker: broker.enqueue(QUEUE, [new_job()]),
        lambda broker: broker.enqueue(QUEUE, [new_job(), new_job()]),
        lambda broker: broker.enqueue(QUEUE, [new_job(due="+60000")]),
        lambda broker: broker.enqueue(QUEUE, [unique_job()]),
    ],
)
def test_a_producer_that_used_it_before_brings_it_back(redis, broker, empty, enqueue):
    other = WorkerBroker(broker.config)
    try:
        assert broker.forget(QUEUE) == "forgotten"
        enqueue(broker)
        assert names(redis) == {QUEUE}
    finally:
        other.close()
