"""Outcomes and dead letters are not kept for ever."""

from dataclasses import replace

import pytest

from django_rtq.exceptions import JobNotFound
from django_rtq.jobs.job import JobState
from tests.support.jobs import QUEUE, claimed_job, dead_job, finished_job, queued_job, settle
from tests.support.single_steps import trim
from tests.support.snapshots import GONE, changes, snapshot

DAY_MS = 86_400_000


def died_ago(redis, broker, job, milliseconds):
    seconds, _ = redis.time()
    redis.zadd(broker.keys.of(QUEUE).dead, {job.id: seconds * 1000 - milliseconds})


def test_outcomes_go_when_their_time_is_over(redis, broker):
    old, fresh = finished_job(broker), finished_job(broker)
    for key in (broker.keys.of(QUEUE).finished, broker.keys.of(QUEUE).result_times):
        redis.zadd(key, {old.id: 1})
    before = snapshot(redis)

    assert trim(broker, QUEUE) == 1

    assert changes(before, snapshot(redis)) == {
        "finished": {fresh.id: before["finished"][fresh.id]},
        "result_times": {fresh.id: before["result_times"][fresh.id]},
        "results": {fresh.id: '3600000 "done"'},
    }


def ended_ago(redis, broker, job, milliseconds):
    """As if a job had finished earlier."""
    keys = broker.keys.of(QUEUE)
    redis.zincrby(keys.finished, -milliseconds, job.id)
    redis.zincrby(keys.result_times, -milliseconds, job.id)


def test_an_outcome_that_is_kept_for_seconds_goes_after_two_minutes_with_its_id(redis, broker, inspector):
    job = claimed_job(broker)
    settle(broker, "ack", job, keep_ms=0)
    with pytest.raises(JobNotFound):  # though it is still there
        inspector.find(job.id)
    assert inspector.job_list.page(QUEUE, "finished").jobs == []

    ended_ago(redis, broker, job, 100_000)
    assert trim(broker, QUEUE) == 0
    assert broker.enqueue(QUEUE, [job]) == ["exists"]
    ended_ago(redis, broker, job, 20_001)
    assert trim(broker, QUEUE) == 1

    assert not {"finished", "result_times", "results"} & set(snapshot(redis))
    assert broker.enqueue(QUEUE, [job]) == ["ok"]


def test_an_outcome_that_is_kept_for_longer_stays_for_its_time(redis, broker, inspector):
    job = finished_job(broker)
    ended_ago(redis, broker, job, 120_001)
    before = snapshot(redis)

    assert [trim(broker, QUEUE) for _ in range(2)] == [0, 0]

    until = before["result_times"][job.id] + 3_600_000
    assert changes(before, snapshot(redis)) == {"finished": {job.id: until}}
    assert redis.zscore(broker.keys.of(QUEUE).finished, job.id) == until + 0.5
    assert inspector.find(job.id).forgotten_at.timestamp() == until / 1000
    ended_ago(redis, broker, job, 3_480_000)
    assert trim(broker, QUEUE) == 1
    assert not {"finished", "result_times", "results"} & set(snapshot(redis))


@pytest.mark.parametrize("text", ['"done"', "x", " {}", '-1 "done"', 'x3600000 "done"'])
def test_an_outcome_that_cannot_be_read_is_told_for_two_minutes(redis, broker, inspector, text):
    job = finished_job(broker)
    redis.hset(broker.keys.of(QUEUE).results, job.id, text)
    ended_ago(redis, broker, job, 110_000)

    assert inspector.find(job.id).state is JobState.SUCCEEDED
    assert [listed.id for listed in inspector.job_list.page(QUEUE, "finished").jobs] == [job.id]
    ended_ago(redis, broker, job, 10_001)
    assert inspector.job_list.page(QUEUE, "finished").jobs == []
    assert trim(broker, QUEUE) == 1
    assert not {"finished", "result_times", "results"} & set(snapshot(redis))


def test_old_dead_letters_go_with_all_that_lay_beside_them(redis, broker):
    job = dead_job(broker)
    died_ago(redis, broker, job, 91 * DAY_MS)
    before = snapshot(redis)

    assert trim(broker, QUEUE) == 1

    assert changes(before, snapshot(redis)) == {"dead": GONE, "jobs": GONE, "failures": GONE, "errors": GONE}


def test_younger_ones_stay(redis, broker):
    died_ago(redis, broker, dead_job(broker), 89 * DAY_MS)
    queued_job(broker)
    before = snapshot(redis)

    assert trim(broker, QUEUE) == 0

    assert snapshot(redis) == before


@pytest.mark.parametrize("most", [1, 3])
def test_the_oldest_dead_letters_go_when_there_are_too_many(redis, broker, most):
    jobs = [dead_job(broker) for _ in range(4)]
    for place, job in enumerate(jobs):
        died_ago(redis, broker, job, 1000 * (10 - place))
    broker.maintenance._config = replace(broker.config, max_dead_letters=most)

    assert trim(broker, QUEUE) == 4 - most

    assert set(snapshot(redis)["dead"]) == set(snapshot(redis)["jobs"]) == {job.id for job in jobs[4 - most :]}


def test_one_call_forgets_a_thousand_ids_and_a_hundred_dead_letters_at_the_most(redis, broker):
    keys = broker.keys.of(QUEUE)
    redis.zadd(keys.finished, {f"finished{n}": 1 for n in range(1500)})
    redis.zadd(keys.dead, {f"dead{n}": 1 for n in range(120)})

    assert [trim(broker, QUEUE) for _ in range(3)] == [1100, 520, 0]


def test_one_call_looks_at_a_hundred_outcomes_at_the_most(redis, broker):
    keys, (now, _) = broker.keys.of(QUEUE), redis.time()
    redis.zadd(keys.finished, {f"job{n:03}": 1 for n in range(300)})
    redis.zadd(keys.result_times, {f"job{n:03}": now * 1000 if n < 60 else 1 for n in range(270)})
    redis.hset(keys.results, mapping={f"job{n:03}": "60000 {}" for n in range(270)})

    tended = [
        (broker.maintenance.run([QUEUE]).is_trimmed, redis.zcard(keys.finished), redis.hlen(keys.results))
        for _ in range(3)
    ]

    assert tended == [(False, 230, 230), (False, 130, 130), (True, 60, 60)]


@pytest.mark.parametrize(("ids", "dead", "is_trimmed"), [(999, 99, True), (1000, 0, False), (0, 100, False)])
def test_a_scheduler_hears_whether_there_may_be_more(redis, broker, ids, dead, is_trimmed):
    for key, count in ((broker.keys.of(QUEUE).finished, ids), (broker.keys.of(QUEUE).dead, dead)):
        if count:
            redis.zadd(key, {f"job{n}": 1 for n in range(count)})

    assert broker.maintenance.run([QUEUE]).is_trimmed is is_trimmed


def test_several_queues_go_in_one_round_trip(redis, broker):
    redis.zadd(broker.keys.of("low").finished, {"a": 1, "b": 1})

    broker.maintenance.run([QUEUE, "low"])

    assert not redis.exists(broker.keys.of("low").finished)
