"""What becomes of jobs whose runs a worker ends. That only their worker may end them: test_settlement.py."""

from dataclasses import replace

import pytest

from tests.support.jobs import (
    ERROR,
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    new_job,
    settle,
    settlement,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_the_outcome_is_all_that_is_left(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "ack", job, outcome='{"result": []}') == []

    assert changes(before, snapshot(redis, times=False)) == {
        "jobs": GONE,
        "running:w1": GONE,
        "results": {"a": '<ms> 3600000 {"result": []}'},
        "finished": {"a"},
        "recent_results": ["a"],
        "stats": {"enqueued": 1, "succeeded": 1},
    }


def ack_one(broker, job, *, most, keep_ms=3_600_000, outcome='"done"'):
    """With another limit than that of the settings."""
    told = settlement("ack", job, keep_ms=keep_ms, outcome=outcome)
    ((_, command),) = told.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, replace(broker.config, max_results=most))
    broker.redis.execute_one(command)


def old_outcomes(redis, broker, count, name="old", *, seconds=3000):
    """So many outcomes that are kept for an hour; their jobs finished so many seconds ago, and trim has moved them."""
    keys, (now, _) = broker.keys.of(QUEUE), redis.time()
    finished = {f"{name}-{number:04}": (now - seconds) * 1000 + number for number in range(count)}
    redis.zadd(keys.result_times, finished)
    redis.zadd(keys.result_expiry, {job_id: ms + 3_600_000 for job_id, ms in finished.items()})
    redis.hset(keys.results, mapping={job_id: f'{ms} 3600000 "old"' for job_id, ms in finished.items()})
    return list(finished)


def test_many_outcomes_go_one_per_cent_at_a_time(redis, broker):
    old_outcomes(redis, broker, 500)
    jobs, left = claimed_jobs(broker, *(new_job() for _ in range(7))), []

    for job in jobs:
        ack_one(broker, job, most=500)
        left.append(redis.hlen(broker.keys.of(QUEUE).results))

    assert left == [495, 496, 497, 498, 499, 500, 495]


# -- retry and bury


def test_it_becomes_a_dead_letter(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "bury", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "dead": {"a": MS},
        "failures": {"a": "1"},
        "errors": {"a": ERROR + "\n"},
        "stats": {"enqueued": 1, "failed": 1, "dead": 1},
    }


@pytest.mark.parametrize(("verb", "place", "stats"), [("retry", "scheduled", {}), ("bury", "dead", {"dead": 1})])
def test_a_job_that_never_ran_has_spent_no_attempt(redis, broker, verb, place, stats):
    job = claimed_job(broker, "a")

    settle(broker, verb, job, counted=0)

    after = snapshot(redis, times=False)
    assert (after[place], after["errors"]) == ({"a": MS}, {"a": ERROR + "\n"})
    assert "failures" not in after
    assert after["stats"] == {"enqueued": 1, **stats}


# -- release


def test_a_job_that_is_still_in_its_lane_is_not_there_twice(redis, broker):
    job = claimed_job(broker)
    redis.rpush(broker.keys.of(QUEUE).lane + b"0:", job.id)  # what a torn log leaves of a claim

    settle(broker, "release", job)

    assert snapshot(redis)["lane:0:"] == [job.id]
