"""A job leaves its shard, with a note where it went."""

import pytest

from tests.broker.model.carry_calls import begin, hand_over, pack
from tests.support.jobs import (
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    entered_job,
    finished_job,
    limit_of,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    unique_job,
)
from tests.support.snapshots import GONE, changes, snapshot


@pytest.fixture
def begun(broker):
    begin(broker)


def note(job, shard="0"):
    return {"": "call", job.id: shard}


def test_the_first_job_of_a_lane(redis, broker, begun):
    job = queued_job(broker, "a", client="x", priority=5)
    before = snapshot(redis)

    assert hand_over(broker, job.id) == "handed"

    assert changes(before, snapshot(redis)) == {
        **dict.fromkeys(["bands", "jobs", "lane:5:x", "lanes", "ring:5"], GONE),
        "carried": note(job),
        "finished": {job.id},  # so that it is not enqueued again
        "stats": {"enqueued": 1, "moved": 1},
    }
    assert broker.enqueue(QUEUE, [job]) == ["exists"]


def test_a_job_in_the_middle_of_a_lane_is_passed_over(redis, broker, begun):
    first, job, last = (queued_job(broker, name) for name in "abc")

    assert hand_over(broker, job.id) == "handed"
    assert claim_all(broker) == [first.id, last.id]


@pytest.mark.parametrize("make", [scheduled_job, retrying_job, dead_job])
def test_nothing_is_left_of_other_jobs(redis, broker, begun, make):
    job = make(broker, client="x")

    assert hand_over(broker, job.id) == "handed"

    taken = {name for name, value in snapshot(redis).items() if job.id in str(value)}
    assert taken == {"carried", "finished"}


def test_an_outcome_leaves_all_but_its_id_in_the_order_of_ends(redis, broker, begun):
    job = finished_job(broker)

    assert hand_over(broker, job.id) == "handed"

    assert snapshot(redis)["carried"] == note(job)
    assert "results" not in snapshot(redis)


def test_sent_twice_it_is_handed_over_once(redis, broker, begun):
    job = queued_job(broker)
    stamp = pack(broker, job.id)[0]
    hand_over(broker, job.id, stamp)
    before = snapshot(redis)

    assert hand_over(broker, job.id, stamp) == "handed"
    assert snapshot(redis) == before


@pytest.mark.parametrize("what", ["running", "missing", "changed", "outdated"])
def test_it_stays_and_nothing_changes(redis, broker, begun, inspector, what):
    job = queued_job(broker)
    stamp = pack(broker, job.id)[0]
    if what == "running":
        claim(broker)
    elif what == "missing":
        inspector.cancel(job.id)
        redis.hdel(broker.keys.of(QUEUE).results, job.id)
    elif what == "changed":
        redis.hset(broker.keys.of(QUEUE).progress, job.id, "1 0.5")
    else:
        begin(broker, "newer")
    before = snapshot(redis)

    assert hand_over(broker, job.id, stamp) == what
    assert snapshot(redis) == before


def test_a_key_is_free_and_who_waits_for_it_goes_on_waiting(redis, broker, begun):
    owner = entered_job(broker, "a")
    assert broker.enqueue_unique(QUEUE, [unique_job("b", on_conflict="rerun")])[0].startswith("duplicate")
    assert claim(broker) == [owner.id]
    again = unique_job("c", on_conflict="rerun")
    assert broker.enqueue_unique(QUEUE, [again]) == [f"after {owner.id}"]
    settle(broker, "retry", owner, worker="w2")
    due = snapshot(redis)["scheduled"][again.id]
    assert pack(broker, again.id)[1] == f"after {owner.id}".encode()

    assert hand_over(broker, owner.id) == "handed"

    assert limit_of(broker) < 0
    assert snapshot(redis)["scheduled"] == {again.id: due}
    assert pack(broker, again.id)[0] != b""


def test_who_waits_for_its_end_is_woken(redis, broker, begun):
    job = queued_job(broker)
    redis.zadd(broker.keys.of(QUEUE).waiters, {job.id: 10**13})

    hand_over(broker, job.id)

    assert redis.lrange(broker.keys.of(QUEUE).finished_signal + job.id.encode(), 0, -1) == [b"over"]


def test_a_running_job_has_no_place_to_leave(broker, begun):
    assert hand_over(broker, claimed_job(broker).id) == "running"
