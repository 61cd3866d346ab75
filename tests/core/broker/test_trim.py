"""Outcomes and dead letters are not kept for ever."""

import pytest

from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import JobNotFound
from tests.support.jobs import (
    KEEP_MS,
    QUEUE,
    claimed_job,
    claimed_jobs,
    finished_job,
    new_job,
    settle,
)
from tests.support.mutant import Mutant, mutated
from tests.support.single_steps import renew, trim
from tests.support.snapshots import snapshot

FEW_IDS = Mutant("few_ids", "lib/known_ids", "MOST_IDS = 120000, 1000000", "MOST_IDS = 120000, 3")


def finished_ago(redis, broker, job, milliseconds, *, keep_ms=KEEP_MS):
    """As if a job with an outcome had finished earlier."""
    seconds, _ = redis.time()
    finished_ms = seconds * 1000 - milliseconds
    redis.hset(broker.keys.of(QUEUE).results, job.id, f'{finished_ms} {keep_ms} "done"')
    return finished_ms


def test_an_outcome_that_is_kept_for_seconds_goes_after_two_minutes(redis, broker, readers):
    job = claimed_job(broker)
    settle(broker, "ack", job, keep_ms=0)
    with pytest.raises(JobNotFound):  # though it is still there
        readers.find(job.id)
    assert readers.search([(QUEUE, "finished")]).page().jobs == []

    finished_ago(redis, broker, job, 110_000, keep_ms=0)
    assert trim(broker, QUEUE) == 0
    finished_ago(redis, broker, job, 120_001, keep_ms=0)
    assert trim(broker, QUEUE) == 1

    assert not {"results", "recent_results", "result_times", "result_expiry"} & set(snapshot(redis))
    with pytest.raises(JobNotFound):  # its outcome is gone: it is not taken for a job without one
        readers.find(job.id)
    assert broker.enqueue(QUEUE, [job]) == ["exists"]


@pytest.mark.parametrize(
    "text", ['"done"', "x", " {}", '-1 1 "done"', '3600000 "done"', 'x1795205063204 3600000 "done"']
)
def test_an_outcome_whose_times_cannot_be_read_is_not_shown_and_goes(redis, broker, readers, text):
    job = finished_job(broker)
    redis.hset(broker.keys.of(QUEUE).results, job.id, text)

    with pytest.raises(JobNotFound):
        readers.find(job.id)
    assert readers.search([(QUEUE, "finished")]).page().jobs == []
    assert trim(broker, QUEUE) == 1
    assert not {"results", "recent_results"} & set(snapshot(redis))


def start_period(redis, broker, seconds_ago):
    """As if the ids of finished jobs had been rotated then."""
    redis.hset(broker.keys.of(QUEUE).clock, "rotated", (redis.time()[0] - seconds_ago) * 1000)


@pytest.mark.parametrize("end_period", [trim, lambda broker, queue: renew(broker, [queue], [])], ids=["trim", "renew"])
def test_ids_of_finished_jobs_are_known_for_one_period_after_that_of_their_end(redis, broker, readers, end_period):
    jobs = claimed_jobs(broker, new_job("a"), new_job("b"))
    settle(broker, "ack", jobs[0], outcome="")
    settle(broker, "ack", jobs[1])
    ids = {job.id for job in jobs}
    for seconds, name in ((0, "finished"), (110, "finished"), (121, "finished_before"), (110, "finished_before")):
        start_period(redis, broker, seconds)
        end_period(broker, QUEUE)
        assert snapshot(redis)[name] == ids
        assert snapshot(redis)[name.replace("finished", "no_outcome")] == [jobs[0].id]
        assert broker.enqueue(QUEUE, jobs) == ["exists", "exists"]
        assert readers.find(jobs[0].id).state is JobState.SUCCEEDED

    start_period(redis, broker, 121)
    end_period(broker, QUEUE)

    assert not {"finished", "finished_before", "no_outcome", "no_outcome_before"} & set(snapshot(redis))
    assert broker.enqueue(QUEUE, [jobs[0]]) == ["ok"]


def test_very_many_ids_end_a_period_early(redis, broker):
    jobs = [finished_job(broker) for _ in range(3)]
    start_period(redis, broker, 1)
    with mutated(FEW_IDS):
        trim(broker, QUEUE)
        assert snapshot(redis)["finished_before"] == {job.id for job in jobs}
        finished_job(broker)
        trim(broker, QUEUE)

    assert snapshot(redis)["finished_before"] == {job.id for job in jobs}


def test_one_call_deletes_a_hundred_dead_letters_and_a_thousand_outcomes_at_the_most(redis, broker):
    keys = broker.keys.of(QUEUE)
    redis.hset(keys.results, mapping={f"finished{n}": "1 1 {}" for n in range(1500)})
    for key in (keys.result_times, keys.result_expiry):
        redis.zadd(key, {f"finished{n}": 1 for n in range(1500)})
    redis.zadd(keys.dead, {f"dead{n}": 1 for n in range(120)})

    assert [trim(broker, QUEUE) for _ in range(3)] == [1100, 520, 0]


def test_one_call_reads_a_hundred_recent_outcomes_at_the_most(redis, broker):
    keys, (now, _) = broker.keys.of(QUEUE), redis.time()
    texts = {f"job{n:03}": f"{(now - 130) * 1000} {60_000 if n >= 60 else 600_000} {{}}" for n in range(270)}
    redis.rpush(keys.recent_results, *texts)
    redis.hset(keys.results, mapping=texts)

    tended = [
        (broker.maintain([QUEUE])[2], redis.llen(keys.recent_results), redis.hlen(keys.results)) for _ in range(3)
    ]

    assert tended == [(False, 170, 230), (False, 70, 130), (True, 0, 60)]
    assert redis.zcard(keys.result_times) == redis.zcard(keys.result_expiry) == 60


@pytest.mark.parametrize(("outcomes", "dead", "is_trimmed"), [(999, 99, True), (1000, 0, False), (0, 100, False)])
def test_a_scheduler_hears_whether_there_may_be_more(redis, broker, outcomes, dead, is_trimmed):
    for key, count in ((broker.keys.of(QUEUE).result_expiry, outcomes), (broker.keys.of(QUEUE).dead, dead)):
        if count:
            redis.zadd(key, {f"job{n}": 1 for n in range(count)})

    assert broker.maintain([QUEUE])[2] is is_trimmed
