"""scheduled, retrying -> queued."""

import pytest

from tests.seeds import (
    QUEUE,
    claim_all,
    let_fall_due,
    lose_record,
    names,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.snapshots import GONE, MS, changes, snapshot


def test_what_is_due_goes_to_the_end_of_its_lane(redis, broker):
    queued_job(broker, "first", client="x")
    job = scheduled_job(broker, "a", client="x")
    let_fall_due(broker, job)
    before = snapshot(redis, times=False)

    assert broker.promote(QUEUE) == (None, [job.id])

    assert changes(before, snapshot(redis, times=False)) == {
        "scheduled": GONE,
        "lane:0:x": ["first", "a"],
        "since": {"a": MS},
        "sweep": {"promoted": MS},
        "turn": "2",
    }


def test_a_retry_that_is_due_too(redis, broker):
    job = retrying_job(broker, "a", priority=5)
    let_fall_due(broker, job)
    before = snapshot(redis, times=False)

    assert broker.promote(QUEUE) == (None, [job.id])

    assert changes(before, snapshot(redis, times=False)) == {
        "scheduled": GONE,
        "retrying": GONE,
        "lane:5:": ["a"],
        "lanes": {"5:": MS},
        "ring:5": {"": 2},
        "bands": {"5": 5},
        "since": {"a": MS},
        "sweep": {"contact": MS, "high": MS, "promoted": MS},
        "turn": "2",
        "wake": {"work": 0},
    }


def test_it_waits_since_it_was_due(redis, broker):
    job = scheduled_job(broker)
    let_fall_due(broker, job)
    due = snapshot(redis)["scheduled"][job.id]

    broker.promote(QUEUE)

    after = snapshot(redis)
    assert after["since"] == {job.id: str(due)}
    assert after["lanes"] == {"0:": due}


def test_what_is_not_due_stays(redis, broker):
    scheduled_job(broker)
    before = snapshot(redis, times=False)

    seconds, promoted = broker.promote(QUEUE)

    assert 50 < seconds <= 60
    assert promoted == []
    assert changes(before, snapshot(redis, times=False)) == {"sweep": {"promoted": MS}}


def test_nothing_scheduled_is_nothing_to_wait_for(redis, broker):
    assert broker.promote(QUEUE) == (None, [])


def test_who_was_due_first_comes_first(redis, broker):
    jobs = [scheduled_job(broker, name) for name in "abc"]
    let_fall_due(broker, *reversed(jobs))

    broker.promote(QUEUE)

    assert names(claim_all(broker)) == ["c", "b", "a"]


def test_it_goes_on_where_its_limit_stopped_it(redis, broker):
    jobs = [scheduled_job(broker) for _ in range(5)]
    let_fall_due(broker, *jobs)

    answers = [broker.promote(QUEUE, limit=2) for _ in range(3)]

    assert answers == [
        (0, [job.id for job in jobs[:2]]),
        (0, [job.id for job in jobs[2:4]]),
        (None, [jobs[4].id]),
    ]


@pytest.mark.parametrize("waiting", [scheduled_job, retrying_job])
def test_a_job_whose_record_is_gone_leaves_nothing(redis, broker, waiting):
    job = waiting(broker)
    let_fall_due(broker, job)
    lose_record(broker, job)

    assert broker.promote(QUEUE) == (None, [])

    assert not {"scheduled", "retrying", "lane:0:", "jobs"} & set(snapshot(redis))


def test_several_queues_go_in_one_round_trip(redis, broker):
    due = scheduled_job(broker)
    let_fall_due(broker, due)
    later = scheduled_job(broker, queue="low")

    seconds, promoted = broker.promote_all([QUEUE, "low"])

    assert 50 < seconds <= 60
    assert promoted == {QUEUE: [due.id], "low": []}
    assert set(snapshot(redis)["low:scheduled"]) == {later.id}
