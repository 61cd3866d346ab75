"""running -> scheduled: a job waits for others of its task."""

import pytest

from django_rtq.exceptions import BrokerUnavailable
from django_rtq.testing.drain import server_ms
from tests.broker.model.batch_calls import postpone
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claim,
    claimed_job,
    enqueue_unique,
    entered_job,
    let_fall_due,
    limit_of,
    lose_record,
    names,
    new_job,
    unique_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import GONE, MS, changes, live_jobs, snapshot


def header_of(broker, job):
    ((header, _),) = broker.heads(QUEUE, [job.id.encode()])
    return header


def test_it_waits_in_scheduled_and_nothing_is_counted(redis, broker):
    job = claimed_job(broker, "a", client="x", expires="+9000")
    before = snapshot(redis, times=False)

    assert postpone(broker, job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "scheduled": {"a": MS},
        "scheduled_by_client": {"x": MS},
        "scheduled_by_client:x": {"a": MS},
        "due_signal": {"due": 0},
    }


def test_it_is_ready_when_it_is_due_and_expires_as_before(redis, broker):
    job = claimed_job(broker, "a", expires="+9000")
    before = header_of(broker, job)

    postpone(broker, job, ms=60_000)

    after = header_of(broker, job)
    assert after.expires_ms == before.expires_ms
    assert 0 < after.ready_ms - server_ms(broker) <= 60_000


def test_the_next_run_is_the_first_attempt(redis, broker):
    job = claimed_job(broker, "a")
    postpone(broker, job)
    let_fall_due(broker, job)
    promote(broker, QUEUE)

    assert claim(broker, worker=WORKER) == [job.id]
    assert snapshot(redis, times=False)["running:w1"] == {"a": f"1 {MS}"}


def test_stale_and_sent_twice_it_changes_nothing(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis)
    assert postpone(broker, job, worker="w2") == [job.id]
    assert snapshot(redis) == before

    assert postpone(broker, job) == []
    before = snapshot(redis)
    assert postpone(broker, job, ms=9000) == [job.id]
    assert snapshot(redis) == before


def test_a_job_that_was_asked_to_stop_is_cancelled(redis, broker, inspector):
    job = asked_job(broker, "a")

    assert postpone(broker, job) == []

    assert inspector.find(job.id).state == "cancelled"
    assert live_jobs(redis) == {}


def test_without_a_record_it_is_dropped(redis, broker):
    job = claimed_job(broker, "a")
    lose_record(broker, job)

    assert postpone(broker, job) == []

    assert "scheduled" not in snapshot(redis)


@pytest.mark.parametrize("until", ["start", "done"])
def test_a_unique_job_stays_so_as_long_as_from_its_new_time(broker, until):
    job = entered_job(broker, until=until, limit_ms=10_000)
    assert claim(broker, worker=WORKER) == [job.id]

    postpone(broker, job, ms=50_000)

    assert 55_000 < limit_of(broker) <= 60_000
    assert enqueue_unique(broker, unique_job("b", until=until)) == [f"duplicate {job.id}"]


def test_it_does_not_count_for_limits_while_it_waits(broker, limits):
    limits.set_client(QUEUE, "x", max_running=1, rate="2/h", burst=2)
    for _ in range(3):
        job = claimed_job(broker, "a", client="x")
        postpone(broker, job)

    broker.enqueue(QUEUE, [new_job(name, client="x") for name in "bcd"])
    assert names(claim(broker, 5)) == ["b"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_when_the_connection_is_lost_it_can_be_sent_again(redis, broker, moment):
    job = claimed_job(broker, "a")
    redis.drop_connection(moment)
    with pytest.raises(BrokerUnavailable):
        postpone(broker, job)

    assert postpone(broker, job) == ([] if moment == "before" else [job.id])

    assert list(snapshot(redis)["scheduled"]) == [job.id]
