"""running -> succeeded."""

import pytest

from tests.seeds import (
    QUEUE,
    WORKER,
    claim,
    claimed_job,
    claimed_jobs,
    let_fall_due,
    new_job,
    retrying_job,
    settle,
    settlement,
)
from tests.snapshots import GONE, MS, changes, snapshot


def test_the_outcome_is_all_that_is_left(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "ack", job, outcome='{"result": []}') == []

    assert changes(before, snapshot(redis, times=False)) == {
        "jobs": GONE,
        "running:w1": GONE,
        "results": {"a": '{"result": []}'},
        "finished": {"a": MS},
        "stats": {"enqueued": 1, "succeeded": 1},
    }


def test_without_an_outcome_only_the_id_is_kept(redis, broker):
    job = claimed_job(broker, "a")

    settle(broker, "ack", job, outcome="")

    after = snapshot(redis)
    assert set(after["finished"]) == {job.id}
    assert "results" not in after


def test_it_is_kept_for_its_time(redis, broker):
    job = claimed_job(broker)
    seconds, _ = redis.time()

    settle(broker, "ack", job, keep_ms=120_000)

    assert snapshot(redis)["finished"][job.id] == pytest.approx(seconds * 1000 + 120_000, abs=3000)


def test_nothing_is_left_of_its_failures(redis, broker):
    job = retrying_job(broker, "a")
    let_fall_due(broker, job)
    broker.promote(QUEUE)
    claim(broker, worker=WORKER)

    settle(broker, "ack", job)

    assert set(snapshot(redis)) == {
        "rtq:queues", "finished", "results", "stats", "sweep", "turn", "workers", "holders", "due"
    }  # fmt: skip


def test_times_are_added_up(redis, broker):
    jobs = claimed_jobs(broker, new_job(), new_job())
    told = settlement("ack", *jobs)
    told.run_ms, told.wait_ms = 12.6, 7

    broker.settle(WORKER, QUEUE, told)

    assert snapshot(redis)["stats"] == {"enqueued": 2, "succeeded": 2, "run_ms": 13, "wait_ms": 7}
    assert (told.run_ms, told.wait_ms) == (0, 0)


def test_the_oldest_outcomes_go_when_there_are_too_many(redis, broker):
    jobs = claimed_jobs(broker, *(new_job() for _ in range(6)))

    for place, job in enumerate(jobs):
        (command,) = settlement("ack", job, keep_ms=1000 * place, outcome=str(place)).commands(
            broker.keys.of(QUEUE), WORKER, max_results=4
        )
        broker.wire.one(command[1])

    after = snapshot(redis)
    assert set(after["finished"]) == {job.id for job in jobs[2:]}
    assert after["results"] == {job.id: str(place) for place, job in enumerate(jobs) if place >= 2}
