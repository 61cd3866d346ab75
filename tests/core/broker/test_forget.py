"""A queue without jobs, workers and outcomes can be forgotten, and comes back when it is used."""

import pytest

from django_rtq.core.broker.broker import Broker
from tests.support.apps import Inspector
from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    finished_job,
    new_job,
    queued_job,
    scheduled_job,
    unique_job,
)
from tests.support.snapshots import changes, snapshot


@pytest.fixture
def empty(broker, inspector):
    """A queue that had jobs, all of which were purged."""
    queued_job(broker, client="acme", priority=5)
    scheduled_job(broker)
    while inspector.purge(QUEUE):
        pass


def names(redis):
    return {name.decode() for name in redis.smembers("rtq:queues")}


def test_nothing_but_what_expires_is_left(redis, broker, empty):
    broker.register_queues(["other"])

    assert broker.maintenance.forget(QUEUE) == "forgotten"

    assert names(redis) == {"other"}
    assert sorted(key for key in redis.scan_iter() if redis.ttl(key) < 0) == [b"rtq:format", b"rtq:queues"]


def test_a_dry_run_says_what_would_be_and_changes_nothing(redis, broker, empty):
    dead_job(broker, queue="used")
    before = snapshot(redis)

    answers = [broker.maintenance.forget(queue, is_dry_run=True) for queue in (QUEUE, QUEUE, "used")]

    assert answers == ["forgotten", "forgotten", "jobs"]
    assert changes(before, snapshot(redis)) == {}


@pytest.mark.parametrize(
    ("seed", "answer"),
    [
        (queued_job, "jobs"),
        (scheduled_job, "jobs"),
        (claimed_job, "jobs"),
        (dead_job, "jobs"),
        (lambda broker: broker.sign_on([QUEUE], "w1"), "workers"),
        (finished_job, "recent"),
        (lambda broker: Inspector(broker).pause(QUEUE), "paused"),
    ],
)
def test_a_queue_in_use_stays(redis, broker, seed, answer):
    seed(broker)
    before = snapshot(redis)

    assert broker.maintenance.forget(QUEUE, discard_outcomes=True) == answer

    assert changes(before, snapshot(redis)).keys() <= {"clock"}  # of trim


def test_outcomes_stay_unless_they_are_discarded(redis, broker):
    finished_job(broker)
    redis.delete("{rtq:default}:finished")  # as after some minutes

    assert broker.maintenance.forget(QUEUE) == "outcomes"
    assert broker.maintenance.forget(QUEUE, discard_outcomes=True) == "forgotten"

    assert names(redis) == set()


def test_a_queue_that_had_a_worker_lately_stays_if_it_has_to_be_idle(broker):
    broker.register_queues([QUEUE])
    broker.sign_on([QUEUE], "w1")
    broker.sign_off([QUEUE], "w1")

    assert broker.maintenance.forget(QUEUE, idle_ms=3_600_000) == "recent"
    assert broker.maintenance.forget(QUEUE) == "forgotten"


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
    other = Broker(broker.config)
    try:
        assert broker.maintenance.forget(QUEUE) == "forgotten"
        enqueue(broker)
        assert names(redis) == {QUEUE}
    finally:
        other.close()
