"""dead -> queued."""

import pytest

from django_rtq.signals import job_requeued
from tests.support.jobs import (
    ERROR,
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    finished_job,
    held_job,
    lose_record,
    names,
    new_job,
    queued_job,
    retrying_job,
    settle,
    unique_job,
)
from tests.support.snapshots import GONE, MS, changes, live_jobs, snapshot


def test_it_goes_to_the_end_of_its_lane_with_all_its_attempts(redis, broker, inspector):
    job = dead_job(broker, "a", client="x", priority=5, body='{"args": []}')
    queued_job(broker, "first", client="x", priority=5)
    before = snapshot(redis, times=False)

    assert inspector.requeue(QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis, times=False)) == {
        "dead": GONE,
        "failures": GONE,
        "lane:5:x": ["first", "a"],
        "waiting_since": {"a": MS},
        "stats": {**before["stats"], "requeued": 1},
    }
    assert before["errors"] == {"a": ERROR + "\n"}  # stays: people want to know what it died of


def test_its_crashes_are_forgiven(redis, broker, inspector):
    job = claimed_job(broker, max_crashes=0)
    broker.reclaim_child(QUEUE, "w1", [job.id])

    inspector.requeue(QUEUE, [job.id])

    assert "crashes" not in snapshot(redis)
    assert names(claim(broker, idle=False)) == ["job"]


def test_it_is_ready_now_and_does_not_expire(redis, broker, inspector):
    job = dead_job(broker, client="a b", expires="+1", body="5 3 1 2 x\n")
    _, _, ready, _, _ = live_jobs(redis)[job.id].split(" ", 4)

    inspector.requeue(QUEUE, [job.id])

    priority, max_crashes, ready_again, expires, rest = live_jobs(redis)[job.id].split(" ", 4)
    assert (priority, max_crashes, expires, rest) == ("0", "3", "0", "a b\n5 3 1 2 x\n")
    assert int(ready_again) >= int(ready)


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_stays_as_it_is(redis, broker, inspector, record):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert inspector.requeue(QUEUE, [job.id]) == [job.id]

    assert live_jobs(redis) == {job.id: record}
    assert claim_all(broker) == [job.id]


@pytest.mark.parametrize("seed", [queued_job, claimed_job, retrying_job, finished_job])
def test_a_job_that_is_not_dead_is_left_alone(redis, broker, inspector, seed):
    job = seed(broker)
    before = snapshot(redis)

    assert inspector.requeue(QUEUE, [job.id, new_job().id]) == []

    assert snapshot(redis) == before


def test_a_dead_letter_whose_record_is_gone_is_left_alone(redis, broker, inspector):
    job = dead_job(broker)
    lose_record(broker, job)
    before = snapshot(redis)

    assert inspector.requeue(QUEUE, [job.id]) == []

    assert snapshot(redis) == before


def test_twice_in_one_call_is_once(redis, broker, inspector):
    job = dead_job(broker)

    assert inspector.requeue(QUEUE, [job.id, job.id]) == [job.id]

    assert snapshot(redis)["lane:0:"] == [job.id]


def test_many_go_in_several_calls(redis, broker, inspector):
    jobs = [dead_job(broker) for _ in range(120)]

    assert inspector.requeue(QUEUE, [job.id for job in jobs]) == [job.id for job in jobs]

    assert snapshot(redis)["lane:0:"] == [job.id for job in jobs]
    assert "dead" not in snapshot(redis)


def test_its_next_run_is_the_first_again(redis, broker, inspector):
    job = dead_job(broker, "a")
    inspector.requeue(QUEUE, [job.id])

    claim(broker)

    assert snapshot(redis, times=False)["running:w2"] == {"a": "1 <ms>"}
    assert settle(broker, "bury", job, worker="w2") == []


def test_it_is_said_when_there_is_something_to_say(broker, inspector):
    heard = []
    job_requeued.connect(lambda **said: heard.append((said["job_ids"], said["queue"])), weak=False, dispatch_uid="test")
    job = dead_job(broker)
    try:
        inspector.requeue(QUEUE, [job.id])
        inspector.requeue(QUEUE, [job.id])
    finally:
        job_requeued.disconnect(dispatch_uid="test")

    assert heard == [([job.id], QUEUE)]


# -- unique jobs


def dead_unique_job(broker, name="a"):
    job = held_job(broker, name)
    settle(broker, "bury", job)
    return job


def test_it_takes_what_it_held_again(redis, broker, inspector):
    job = dead_unique_job(broker)

    assert inspector.requeue(QUEUE, [job.id]) == [job.id]

    assert snapshot(redis)["unique:d1"] == job.id
    assert 0 < redis.pttl(broker.keys.of(QUEUE).unique + b"d1") <= 3_600_000
    assert broker.enqueue_unique(QUEUE, [unique_job("b")]) == [f"duplicate {job.id}"]


def test_it_stays_dead_while_another_like_it_lives(redis, broker, inspector):
    job = dead_unique_job(broker)
    broker.enqueue_unique(QUEUE, [unique_job("b")])
    before = snapshot(redis)

    assert inspector.requeue(QUEUE, [job.id]) == []

    assert snapshot(redis) == before


def test_of_two_that_are_alike_the_first_lives_again(broker, inspector):
    jobs = [dead_unique_job(broker, name) for name in "ab"]

    assert inspector.requeue(QUEUE, [job.id for job in jobs]) == [jobs[0].id]
