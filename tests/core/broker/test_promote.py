"""scheduled, retrying -> queued."""

import time

import pytest

from tests.support.jobs import (
    QUEUE,
    let_fall_due,
    names,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import GONE, MS, changes, snapshot
from tests.support.waiting import wait_until


def test_what_is_due_goes_to_the_end_of_its_lane(redis, broker):
    queued_job(broker, "first", client="x")
    job = scheduled_job(broker, "a", client="x")
    let_fall_due(broker, job)
    before = snapshot(redis, times=False)

    assert promote(broker, QUEUE) == (None, [job.id])

    assert changes(before, snapshot(redis, times=False)) == {
        **dict.fromkeys(["scheduled", "scheduled_by_client", "scheduled_by_client:x"], GONE),
        "lane:0:x": ["first", "a"],
        "waiting_since": {"a": MS},
        "clock": {"promoted": MS},
    }


def test_it_waits_since_it_was_due(redis, broker):
    job = scheduled_job(broker)
    let_fall_due(broker, job)
    due = snapshot(redis)["scheduled"][job.id]

    promote(broker, QUEUE)

    after = snapshot(redis)
    assert after["waiting_since"] == {job.id: str(due)}
    assert after["lanes"] == {"0:": due}


# -- by turns, when more are due than a call promotes


@pytest.fixture
def flood(broker):
    """Thirty jobs of one client that are due."""
    jobs = [new_job(f"f{n}", client="flood", due="+60000") for n in range(30)]
    broker.enqueue(QUEUE, jobs)
    let_fall_due(broker, *jobs)
    return jobs


def let_fall_due_now(broker, job):
    """Let the job fall due after all that are due already, and before the next call.

    Of clients that are due or had their turn in the same millisecond, names decide who is first.
    """
    keys, now_ms = broker.keys.of(QUEUE), time.time_ns() // 1_000_000
    for key in (keys.scheduled, keys.retrying, keys.scheduled_by_client + f":{job.client}".encode()):
        broker.redis.execute_one(("ZADD", key, "XX", now_ms, job.id))
    broker.redis.execute_one(("ZADD", keys.scheduled_by_client, "XX", "LT", now_ms, job.client))
    wait_until(lambda: time.time_ns() // 1_000_000 > now_ms)


@pytest.mark.parametrize("waiting", [scheduled_job, retrying_job])
def test_many_due_jobs_of_one_client_keep_no_other_waiting(broker, flood, waiting):
    single = waiting(broker, "single", client="single")
    assert names(promote(broker, QUEUE, limit=8)[1]) == [f"f{n}" for n in range(8)]
    let_fall_due_now(broker, single)

    assert set(names(promote(broker, QUEUE, limit=8)[1])) == {"single", *(f"f{n}" for n in range(8, 15))}


def test_many_due_jobs_of_many_clients_keep_no_other_waiting(redis, broker):
    for client in range(20):
        many = [new_job(client=f"busy{client}", due="+60000") for _ in range(5)]
        broker.enqueue(QUEUE, many)
        let_fall_due(broker, *many)
    promote(broker, QUEUE, limit=8)
    single = scheduled_job(broker, client="single")
    let_fall_due_now(broker, single)

    promoted = {job_id for _ in range(5) for job_id in promote(broker, QUEUE, limit=8)[1]}

    assert single.id in promoted  # once each of the twenty had a turn


def test_what_is_missing_in_the_index_is_promoted_all_the_same(redis, broker, flood):
    other = scheduled_job(broker, client="other")
    let_fall_due(broker, other)
    redis.delete(*redis.keys("*scheduled_by_client*"))
    late = [scheduled_job(broker, client="late") for _ in range(30)]
    let_fall_due(broker, *late)

    promoted = []
    while job_ids := promote(broker, QUEUE, limit=8)[1]:
        assert len(job_ids) == min(8, 61 - len(promoted))
        promoted += job_ids

    assert sorted(promoted) == sorted(job.id for job in (*flood, other, *late))
    assert redis.keys("*scheduled_by_client*") == []


def test_a_torn_index_promotes_nothing_before_its_time_or_twice(redis, broker, flood):
    job = scheduled_job(broker, client="torn")
    keys = broker.keys.of(QUEUE)
    redis.zadd(keys.scheduled_by_client, {"torn": 1})
    redis.zadd(keys.scheduled_by_client + b":torn", {job.id: 1, "gone": 2, flood[0].id: 3, flood[-1].id: 4})

    promoted = []
    while job_ids := promote(broker, QUEUE, limit=8)[1]:
        promoted += job_ids

    assert sorted(promoted) == sorted(job.id for job in flood)
    after = snapshot(redis)
    assert set(after["scheduled"]) == {job.id}
    assert not [key for key in after if key.startswith("scheduled_by_client")]
