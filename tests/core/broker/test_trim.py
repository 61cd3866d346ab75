"""Outcomes and dead letters are not kept for ever."""

import pytest

from django_rtq.exceptions import JobNotFound
from tests.support.jobs import (
    QUEUE,
    finished_job,
)
from tests.support.mutant import Mutant, mutated
from tests.support.single_steps import trim
from tests.support.snapshots import snapshot

FEW_IDS = Mutant("few_ids", "lib/known_ids", "MOST_IDS = 120000, 1000000", "MOST_IDS = 120000, 3")


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


def test_very_many_ids_end_a_period_early(redis, broker):
    jobs = [finished_job(broker) for _ in range(3)]
    start_period(redis, broker, 1)
    with mutated(FEW_IDS):
        trim(broker, QUEUE)
        assert snapshot(redis)["finished_before"] == {job.id for job in jobs}
        finished_job(broker)
        trim(broker, QUEUE)

    assert snapshot(redis)["finished_before"] == {job.id for job in jobs}


def test_one_call_deletes_a_hundred_dead_letters_and_a_thousand_outcomes_at_the_most(redis, broker, keys):
    redis.hset(keys.results, mapping={f"finished{n}": "1 1 {}" for n in range(1500)})
    for key in (keys.result_times, keys.result_expiry):
        redis.zadd(key, {f"finished{n}": 1 for n in range(1500)})
    redis.zadd(keys.dead, {f"dead{n}": 1 for n in range(120)})

    assert [trim(broker, QUEUE) for _ in range(3)] == [1100, 520, 0]


@pytest.mark.parametrize(("outcomes", "dead", "is_trimmed"), [(999, 99, True), (1000, 0, False), (0, 100, False)])
def test_a_scheduler_hears_whether_there_may_be_more(redis, broker, outcomes, dead, is_trimmed):
    for key, count in ((broker.keys.of(QUEUE).result_expiry, outcomes), (broker.keys.of(QUEUE).dead, dead)):
        if count:
            redis.zadd(key, {f"job{n}": 1 for n in range(count)})

    assert broker.maintain([QUEUE])[2] is is_trimmed
