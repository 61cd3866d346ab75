"""running -> succeeded."""

import time

import pytest

from django_rtq.exceptions import JobNotFound
from django_rtq.jobs.job import JobState
from tests.broker.model.mutants import Mutant, mutated
from tests.support.jobs import (
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
from tests.support.single_steps import promote, trim
from tests.support.snapshots import GONE, MS, changes, snapshot

CONSTANTS = "MOST_IDS, AT_ONCE, TEXTS_AT_ONCE = 120000, 1000000, 1000, 100"
FEW_IDS = Mutant("few_ids", CONSTANTS, CONSTANTS.replace("1000000", "3"))


def test_the_outcome_is_all_that_is_left(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "ack", job, outcome='{"result": []}') == []

    assert changes(before, snapshot(redis, times=False)) == {
        "jobs": GONE,
        "running:w1": GONE,
        "results": {"a": '3600000 {"result": []}'},
        "finished": {"a": MS},
        "result_times": {"a": MS},
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

    settle(broker, "ack", job, keep_ms=90_000, outcome="")

    assert snapshot(redis)["finished"][job.id] == pytest.approx(seconds * 1000 + 90_000, abs=3000)


@pytest.mark.parametrize("keep_ms", [0, 1000, 3_600_000])
def test_of_a_job_with_an_outcome_the_id_is_looked_at_after_two_minutes(redis, broker, keep_ms):
    job = claimed_job(broker)

    settle(broker, "ack", job, keep_ms=keep_ms)

    keys = broker.keys.of(QUEUE)
    assert redis.zscore(keys.finished, job.id) == redis.zscore(keys.result_times, job.id) + 120_000.5


def test_nothing_is_left_of_its_failures(redis, broker):
    job = retrying_job(broker, "a")
    let_fall_due(broker, job)
    promote(broker, QUEUE)
    claim(broker, worker=WORKER)

    settle(broker, "ack", job)

    assert set(snapshot(redis)) == {
        *("rtq:queues", "finished", "result_times", "results"),
        *("stats", "clock", "turn", "workers", "signed_on", "due_signal"),
    }


def ack_one(broker, job, *, most, keep_ms=3_600_000, outcome='"done"'):
    """With another limit than that of the settings."""
    told = settlement("ack", job, keep_ms=keep_ms, outcome=outcome)
    ((_, command),) = told.commands(broker.keys.of(QUEUE), WORKER, max_results=most)
    broker.redis.execute_one(command)


def outcomes_of_long_ago(redis, broker, count, name="old", *, seconds=3000):
    """So many outcomes that are kept for an hour; their jobs are over since so many seconds."""
    keys, (now, _) = broker.keys.of(QUEUE), redis.time()
    ids = [f"{name}-{number}" for number in range(count)]
    redis.zadd(keys.finished, dict.fromkeys(ids, (now - seconds + 3600) * 1000))
    redis.zadd(keys.result_times, {job_id: (now - seconds) * 1000 + place for place, job_id in enumerate(ids)})
    redis.hset(keys.results, mapping=dict.fromkeys(ids, '3600000 "old"'))
    return ids


def test_of_too_many_outcomes_those_go_that_finished_first_however_long_they_were_to_be_kept(redis, broker):
    jobs = claimed_jobs(broker, *(new_job() for _ in range(6)))

    for place, job in enumerate(jobs):
        ack_one(broker, job, most=4, keep_ms=3_600_000 // (place + 1), outcome=str(place))

    after = snapshot(redis)
    assert after["results"] == {job.id: f"{3_600_000 // (n + 1)} {n}" for n, job in enumerate(jobs) if n >= 2}
    assert set(after["result_times"]) == set(after["results"])


def test_who_loses_its_outcome_is_known_for_two_minutes_after_its_end_but_not_told_of(redis, broker, inspector):
    first, second = claimed_jobs(broker, new_job(), new_job())
    ack_one(broker, first, most=1)
    finished_at = snapshot(redis)["result_times"][first.id]
    ack_one(broker, second, most=1)

    assert snapshot(redis)["finished"][first.id] == finished_at + 120_000
    assert broker.enqueue(QUEUE, [first]) == ["exists"]
    with pytest.raises(JobNotFound):
        inspector.find(first.id)
    assert [job.id for job in inspector.job_list.page(QUEUE, "finished").jobs] == [second.id]


def test_an_id_goes_with_its_outcome_when_its_two_minutes_are_over(redis, broker):
    (old,) = outcomes_of_long_ago(redis, broker, 1, seconds=121)
    job = claimed_job(broker)

    ack_one(broker, job, most=1)

    assert set(snapshot(redis)["finished"]) == {job.id}
    assert broker.enqueue(QUEUE, [job._replace(id=old)]) == ["ok"]


def test_of_ids_whose_outcomes_go_together_those_go_whose_two_minutes_are_over(redis, broker):
    (old,), (young, *_) = (
        outcomes_of_long_ago(redis, broker, 1),
        outcomes_of_long_ago(redis, broker, 2, "new", seconds=5),
    )
    job = claimed_job(broker)

    ack_one(broker, job, most=1)

    assert set(snapshot(redis)["finished"]) == {"new-0", "new-1", job.id}
    assert set(snapshot(redis)["results"]) == {job.id}
    assert broker.enqueue(QUEUE, [job._replace(id=old), job._replace(id=young)]) == ["ok", "exists"]


def test_who_loses_an_outcome_that_was_kept_for_seconds_is_known_for_two_minutes_too(redis, broker):
    first, second = claimed_jobs(broker, new_job(), new_job())
    ack_one(broker, first, most=1, keep_ms=1)
    ack_one(broker, second, most=1)
    time.sleep(0.005)

    trim(broker, QUEUE)

    assert broker.enqueue(QUEUE, [first]) == ["exists"]


@pytest.mark.parametrize("outcome", ["", '"done"'])
def test_an_id_stays_for_its_time_whatever_the_number_of_outcomes(redis, broker, outcome):
    outcomes_of_long_ago(redis, broker, 5)
    job = claimed_job(broker)

    ack_one(broker, job, most=5, keep_ms=60_000, outcome=outcome)

    assert broker.enqueue(QUEUE, [job]) == ["exists"]
    assert snapshot(redis)["results"].get(job.id, "").removeprefix("60000 ") == outcome


def test_after_a_limit_was_lowered_by_much_it_is_reached_step_by_step(redis, broker):
    outcomes_of_long_ago(redis, broker, 9000)
    keys, left = broker.keys.of(QUEUE), []
    for job in claimed_jobs(broker, *(new_job() for _ in range(3))):
        ack_one(broker, job, most=10)
        left.append((redis.hlen(keys.results), redis.zcard(keys.result_times), redis.zcard(keys.finished)))

    assert left == [(n, n, n) for n in (8001, 7002, 6003)]


def test_ids_are_not_without_number_either(redis, broker):
    outcomes_of_long_ago(redis, broker, 2, seconds=3550)  # they were to be forgotten soonest
    jobs = claimed_jobs(broker, *(new_job() for _ in range(4)))
    with mutated(FEW_IDS):
        for job in jobs:
            ack_one(broker, job, most=10, keep_ms=120_000, outcome="")

    after = snapshot(redis)
    assert set(after["finished"]) == {job.id for job in jobs[1:]}
    assert not {"result_times", "results"} & set(after)


def test_a_result_among_too_many_ids_is_kept_for_its_time(redis, broker, inspector):
    kept, *others = claimed_jobs(broker, *(new_job() for _ in range(6)))
    with mutated(FEW_IDS):
        ack_one(broker, kept, most=10)
        for job in others:
            ack_one(broker, job, most=10, keep_ms=120_001, outcome="")

    after = snapshot(redis)
    assert after["finished"] == {
        kept.id: after["result_times"][kept.id] + 3_600_000,
        **{job.id: after["finished"][job.id] for job in others[-2:]},
    }
    assert inspector.find(kept.id).state is JobState.SUCCEEDED


def test_of_too_many_ids_no_more_than_a_hundred_outcomes_are_looked_at(redis, broker):
    outcomes_of_long_ago(redis, broker, 150, seconds=5)
    keys = broker.keys.of(QUEUE)
    redis.zadd(keys.finished, {f"old-{number}": number for number in range(150)})
    job = claimed_job(broker)
    with mutated(FEW_IDS):
        ack_one(broker, job, most=1000, outcome="")

    assert (redis.zcard(keys.finished), redis.hlen(keys.results)) == (151, 150)
    assert redis.zcount(keys.finished, 0, 1000) == 50
