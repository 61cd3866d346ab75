"""running -> cancelled, and what else may become of a job that was asked to stop."""

import pytest

from django_rtq.core.jobs.job import CancelAnswer, JobState
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claim_all,
    claimed_job,
    queued_job,
    settle,
)
from tests.support.snapshots import GONE, changes, live_jobs, snapshot

ASKED = {"a": 'ask 3600000 10000 {"state":"cancelled"}'}
OVER = {
    "jobs": GONE,
    "running:w1": GONE,
    "cancel_requests": GONE,
    "finished": {"a"},
    "recent_results": ["a"],
    "results": {"a": '<ms> 3600000 {"state":"cancelled"}'},
}


def test_a_job_that_runs_is_asked(redis, broker, inspector):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert inspector.cancel(job.id) is CancelAnswer.ASKED

    assert changes(before, snapshot(redis, times=False)) == {"cancel_requests": ASKED}
    assert inspector.find(job.id).state is JobState.RUNNING
    assert inspector.find(job.id).is_stopping


def test_the_wish_may_become_harder(redis, broker, inspector):
    job = asked_job(broker, "a")
    before = snapshot(redis, times=False)

    inspector.cancel(job.id, terminate=True)

    wish = ASKED["a"].replace("ask", "terminate")
    assert changes(before, snapshot(redis, times=False)) == {"cancel_requests": {"a": wish}}


@pytest.mark.parametrize("verb", ["retry", "bury", "release"])
def test_whatever_a_worker_tells_of_it_it_is_cancelled(redis, broker, verb):
    job = asked_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, verb, job) == []

    assert changes(before, snapshot(redis, times=False)) == OVER | {"stats": {"enqueued": 1, "cancelled": 1}}
    assert claim_all(broker) == []


def test_a_job_that_succeeds_before_it_notices_has_succeeded(redis, broker, inspector):
    job = asked_job(broker, "a")

    settle(broker, "ack", job, outcome='{"state":"succeeded"}')

    assert inspector.find(job.id).state is JobState.SUCCEEDED
    assert "cancel_requests" not in snapshot(redis)


def test_when_its_worker_dies_it_is_cancelled_and_its_neighbours_are_not(redis, broker):
    job = asked_job(broker, "a", max_crashes=0)
    beside = queued_job(broker, "b")
    broker.claim(WORKER, [QUEUE], 1)

    assert broker.reclaim_child(QUEUE, WORKER, [job.id]) == [(beside.id, "queued"), (job.id, "cancelled")]

    assert live_jobs(redis).keys() == {beside.id}
    assert "crashes" not in snapshot(redis)
    assert claim_all(broker) == [beside.id]


def test_after_a_torn_log_a_job_that_was_over_is_not_cancelled_as_well(redis, broker, inspector):
    job = asked_job(broker, "a")
    wish, keys = redis.hget(broker.keys.of(QUEUE).cancel_requests, job.id), broker.keys.of(QUEUE)
    settle(broker, "ack", job, outcome='{"state":"succeeded"}')
    redis.hset(keys.cancel_requests, job.id, wish)
    redis.hset(keys.running(WORKER), job.id, "1 1")

    assert broker.reclaim_child(QUEUE, WORKER, [job.id]) == []

    assert inspector.find(job.id).state is JobState.SUCCEEDED
    after = snapshot(redis)
    assert after["stats"] == {"enqueued": 1, "succeeded": 1}
    assert "cancel_requests" not in after


@pytest.mark.parametrize("worker", ["w2", WORKER])
def test_who_does_not_hold_it_cannot_settle_it(redis, broker, worker):
    job = asked_job(broker, "a")
    if worker == WORKER:
        settle(broker, "finish_cancel", job)
    before = snapshot(redis)

    assert settle(broker, "finish_cancel", job, worker=worker) == [job.id]

    assert snapshot(redis) == before


def test_the_supervisor_hears_of_its_own(broker, inspector):
    job, other = asked_job(broker, "a"), claimed_job(broker, "b", worker="w2")
    inspector.cancel(other.id, terminate=True)

    notes = {WORKER: {}, "w3": {}}
    result = broker.heartbeat([QUEUE, "low"], notes, promote=False)

    assert result.cancel_requests == [(WORKER, job.id, "ask")]
    assert broker.heartbeat([QUEUE], {"w2": {}}, promote=False).cancel_requests == [("w2", other.id, "terminate")]
