"""running -> succeeded."""

import pytest

from django_rtq.exceptions import JobNotFound
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    new_job,
    settle,
    settlement,
)
from tests.support.snapshots import GONE, changes, snapshot


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
    ((_, command),) = told.commands(*[broker.keys.of(QUEUE)] * 2, WORKER, max_results=most, logs_ms=0)
    broker.redis.execute_one(command)


def old_outcomes(redis, broker, count, name="old", *, seconds=3000):
    """So many outcomes that are kept for an hour; their jobs finished so many seconds ago, and trim has moved them."""
    keys, (now, _) = broker.keys.of(QUEUE), redis.time()
    finished = {f"{name}-{number:04}": (now - seconds) * 1000 + number for number in range(count)}
    redis.zadd(keys.result_times, finished)
    redis.zadd(keys.result_expiry, {job_id: ms + 3_600_000 for job_id, ms in finished.items()})
    redis.hset(keys.results, mapping={job_id: f'{ms} 3600000 "old"' for job_id, ms in finished.items()})
    return list(finished)


def test_of_too_many_outcomes_those_go_that_finished_first_however_long_they_were_to_be_kept(redis, broker):
    jobs = claimed_jobs(broker, *(new_job() for _ in range(6)))

    for place, job in enumerate(jobs):
        ack_one(broker, job, most=4, keep_ms=3_600_000 // (place + 1), outcome=str(place))

    after = snapshot(redis)
    assert list(after["results"]) == after["recent_results"] == [job.id for job in jobs[2:]]
    assert [text.split(" ", 1)[1] for text in after["results"].values()] == [
        f"{3_600_000 // (n + 1)} {n}" for n in range(2, 6)
    ]


def test_outcomes_that_trim_has_moved_go_before_recent_ones(redis, broker):
    old = old_outcomes(redis, broker, 3)
    jobs = claimed_jobs(broker, *(new_job() for _ in range(5)))

    for job, left in zip(jobs, (old, old[1:], old[2:], [], []), strict=True):
        ack_one(broker, job, most=4)
        after = snapshot(redis)
        assert sorted(after.get("result_times", ())) == sorted(after.get("result_expiry", ())) == left

    assert set(after["results"]) == {job.id for job in jobs[1:]}


def test_many_outcomes_go_one_per_cent_at_a_time(redis, broker):
    old_outcomes(redis, broker, 500)
    jobs, left = claimed_jobs(broker, *(new_job() for _ in range(7))), []

    for job in jobs:
        ack_one(broker, job, most=500)
        left.append(redis.hlen(broker.keys.of(QUEUE).results))

    assert left == [495, 496, 497, 498, 499, 500, 495]


def test_a_job_whose_outcome_was_dropped_is_known_but_not_shown(redis, broker, inspector):
    first, second = claimed_jobs(broker, new_job(), new_job())
    ack_one(broker, first, most=1)
    ack_one(broker, second, most=1)

    assert broker.enqueue(QUEUE, [first]) == ["exists"]
    with pytest.raises(JobNotFound):
        inspector.find(first.id)
    assert [job.id for job in inspector.job_list.page(QUEUE, "finished").jobs] == [second.id]


@pytest.mark.parametrize("outcome", ["", '"done"'])
def test_an_id_is_known_whatever_the_number_of_outcomes(redis, broker, outcome):
    old_outcomes(redis, broker, 5)
    job = claimed_job(broker)

    ack_one(broker, job, most=0, outcome=outcome)

    assert broker.enqueue(QUEUE, [job]) == ["exists"]
    assert broker.enqueue(QUEUE, [job, new_job()]) == ["exists", "ok"]


def test_after_a_limit_was_lowered_by_much_it_is_reached_step_by_step(redis, broker):
    old_outcomes(redis, broker, 9000)
    keys, left = broker.keys.of(QUEUE), []
    for job in claimed_jobs(broker, *(new_job() for _ in range(3))):
        ack_one(broker, job, most=10)
        left.append((redis.hlen(keys.results), redis.zcard(keys.result_times), redis.zcard(keys.result_expiry)))

    assert left == [(n, n - more, n - more) for more, n in enumerate((8001, 7002, 6003), 1)]
