"""Who begins to count the slots of a schedule, and since when."""

import time

import pytest

from django_rtq.core.broker.schedule_store import ScheduleState
from django_rtq.exceptions import BrokerFull
from tests.support.jobs import QUEUE, new_job
from tests.support.snapshots import snapshot

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000


def state(broker, name="report"):
    return broker.schedules.states([QUEUE])[1][QUEUE][name]


def test_a_schedule_begins_once(redis, broker):
    assert broker.schedules.begin(QUEUE, "report", "d1", NOW_MS)
    assert snapshot(redis) == {"schedules": {"report": f"0 - d1 {NOW_MS}"}}

    assert not broker.schedules.begin(QUEUE, "report", "d1", NOW_MS + 5)
    assert state(broker) == ScheduleState(0, "-", "d1", NOW_MS)


def test_a_changed_definition_begins_anew_and_the_last_slot_stays_over(broker):
    job = new_job()
    broker.schedules.begin(QUEUE, "report", "d1", NOW_MS - 10)
    broker.schedules.fire(QUEUE, "report", NOW_MS - 5, job)

    assert broker.schedules.begin(QUEUE, "report", "d2", NOW_MS)

    assert state(broker) == ScheduleState(NOW_MS - 5, job.id, "d2", NOW_MS)
    assert broker.schedules.fire(QUEUE, "report", NOW_MS - 5, new_job()) == "already"


def test_what_began_by_a_clock_that_was_far_ahead_begins_anew(redis, broker):
    redis.hset(broker.keys.of(QUEUE).schedules, "report", f"0 - d1 {NOW_MS + 2 * HOUR_MS}")

    assert broker.schedules.begin(QUEUE, "report", "d1", NOW_MS)

    assert state(broker).began_ms == NOW_MS


def test_a_full_server_refuses_a_new_schedule(redis, broker):
    with redis.full_memory(), pytest.raises(BrokerFull):
        broker.schedules.begin(QUEUE, "report", "d1", NOW_MS)

    assert snapshot(redis) == {}
