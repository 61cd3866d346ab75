"""The pulse of queues: what changes when something happens in them."""

import pytest

from django_rtq.console.inspector.inspector import Inspector
from django_rtq.core.broker.scripts import SCRIPTS
from tests.console.lua.test_time_series import set_counters
from tests.support.jobs import QUEUE, claimed_job, dead_job, queued_job, scheduled_job
from tests.support.server_clock import minute_with_time_left
from tests.support.snapshots import snapshot


def pulse(broker, last, *queues):
    """The time, and the pulse of each queue."""
    keys = [broker.keys.of(queue) for queue in queues or (QUEUE,)]
    return broker.redis.execute_one(SCRIPTS["pulse"].call_many(keys, (last,)))


@pytest.fixture
def minute(redis):
    return minute_with_time_left(redis)


def test_it_tells_the_counters_of_the_last_minute_and_those_since(redis, broker, minute):
    set_counters(redis, broker, minute - 1, failed=3)
    set_counters(redis, broker, minute, failed=4)

    now_ms, (before, since, *_) = pulse(broker, minute - 1)

    assert (before, since) == ([b"failed", b"3"], [b"failed", b"4"])
    assert now_ms // 60_000 in (minute, minute + 1)


def test_of_the_present_minute_it_tells_the_counters_once(redis, broker, minute):
    set_counters(redis, broker, minute, failed=4)
    set_counters(redis, broker, minute + 1, failed=4)  # it may have begun

    _, (before, since, *_) = pulse(broker, redis.time()[0] // 60)

    assert (before, since) in (([b"failed", b"4"], []), ([b"failed", b"4"], [b"failed", b"4"]))


def test_each_queue_has_its_own(broker, minute):
    scheduled_job(broker, queue="low")

    _, default, low = pulse(broker, minute, QUEUE, "low")

    assert (default[2], low[2]) == (0, 1)


@pytest.mark.parametrize(
    "happen",
    [
        queued_job,
        scheduled_job,
        claimed_job,
        dead_job,
        lambda broker: Inspector(broker).pause(QUEUE),
    ],
)
def test_it_changes_when_something_happens(broker, minute, happen):
    broker.sign_on([QUEUE], "w2")
    _, before = pulse(broker, minute)

    happen(broker)

    assert pulse(broker, minute)[1] != before


def test_it_changes_when_a_worker_claims_a_job(broker, minute):
    queued_job(broker)
    broker.sign_on([QUEUE], "w1")
    _, before = pulse(broker, minute)

    broker.claim("w1", [QUEUE], 1)

    assert pulse(broker, minute)[1] != before


def test_it_changes_nothing(redis, broker, minute):
    claimed_job(broker)
    before = snapshot(redis)

    pulse(broker, minute)

    assert snapshot(redis) == before
