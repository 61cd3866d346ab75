"""A person has the jobs of a worker taken back whose lease is over."""

import pytest

from django_rtq import signals
from django_rtq.exceptions import LeaseNotExpired
from tests.support.jobs import QUEUE, WORKER, claim, claimed_job, let_lapse, new_job
from tests.support.snapshots import place_of, snapshot


def test_a_silence_of_all_is_waited_for_by_programs_but_not_by_people(redis, broker, rtq):
    job = claimed_job(broker)
    let_lapse(broker, WORKER)
    redis.hset(broker.keys.of(QUEUE).clock, "hold", 10**13)
    assert broker.reclaim(QUEUE)[1] == []

    assert rtq.workers[WORKER].reclaim() == [job.id]


def test_one_that_crashed_too_often_is_dead(redis, broker, rtq):
    job = claimed_job(broker, max_crashes=0)
    let_lapse(broker, WORKER)
    heard = []

    def hear(*, job_ids, buried_ids, **kwargs):
        heard.append((job_ids, buried_ids))

    signals.job_reclaimed.connect(hear)
    try:
        assert rtq.workers[WORKER].reclaim() == [job.id]
    finally:
        signals.job_reclaimed.disconnect(hear)

    assert place_of(redis, job) == "dead"
    assert heard == [([], [job.id])]


def test_all_that_it_held_is_taken_back_in_as_many_steps_as_it_takes(redis, broker, rtq):
    broker.enqueue(QUEUE, [new_job() for _ in range(1203)])
    while claim(broker, 500, worker=WORKER):
        pass
    let_lapse(broker, WORKER)

    assert len(rtq.workers[WORKER].reclaim()) == 1203

    assert not {"workers", "signed_on", "running:w1"} & set(snapshot(redis))


def test_while_its_lease_lasts_nothing_is_taken(redis, broker, rtq):
    claimed_job(broker)
    before = snapshot(redis)

    with pytest.raises(LeaseNotExpired, match=WORKER):
        rtq.workers[WORKER].reclaim()

    assert snapshot(redis) == before
