"""running -> queued."""

import pytest

from tests.seeds import (
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    claimed_jobs,
    names,
    new_job,
    queued_job,
    settle,
)
from tests.snapshots import GONE, MS, changes, snapshot


def test_it_is_queued_again_and_nothing_is_counted(redis, broker):
    job = claimed_job(broker, "a", client="x", priority=5)
    before = snapshot(redis, times=False)

    assert settle(broker, "release", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "lane:5:x": ["a"],
        "lanes": {"5:x": MS},
        "ring:5": {"x": 2},
        "bands": {"5": 5},
        "turn": "2",
        "wake": {"work": 0},
    }


def test_jobs_come_back_to_the_front_in_the_order_of_their_claim(redis, broker):
    jobs = claimed_jobs(broker, *(new_job(name) for name in "abc"))
    queued_job(broker, "d")

    settle(broker, "release", *jobs)

    assert names(claim_all(broker)) == ["a", "b", "c", "d"]


def test_its_client_keeps_the_turn_that_it_has(redis, broker):
    job = claimed_job(broker, client="x")
    queued_job(broker, client="x")
    turns = snapshot(redis)["ring:0"]

    settle(broker, "release", job)

    assert snapshot(redis)["ring:0"] == turns


def test_the_next_run_has_the_same_number(redis, broker):
    job = claimed_job(broker, "a")
    settle(broker, "release", job)

    claim(broker)

    assert snapshot(redis, times=False)["running:w2"] == {"a": "1 <ms>"}


def test_a_job_that_is_still_in_its_lane_is_not_there_twice(redis, broker):
    job = claimed_job(broker)
    redis.rpush(broker.keys.of(QUEUE).lane + b"0:", job.id)  # what a torn log leaves of a claim

    settle(broker, "release", job)

    assert snapshot(redis)["lane:0:"] == [job.id]


@pytest.mark.parametrize("record", ["", "{}", "1 2\n{}", "no header at all"])
def test_a_record_without_a_header_is_queued_as_nobodys(redis, broker, record):
    job = claimed_job(broker, "a")
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    settle(broker, "release", job)

    assert snapshot(redis, times=False)["lane:0:"] == ["a"]
    assert names(claim_all(broker)) == ["a"]


def test_a_lane_waits_as_long_as_the_job_that_came_back(redis, broker):
    job = claimed_job(broker)
    since = int(job.id[:12], 16)

    settle(broker, "release", job)

    assert snapshot(redis)["lanes"] == {"0:": since}
