"""running -> cancelled, and what else may become of a job that was asked to stop."""

import pytest

from django_rtq.core.jobs.job import CancelAnswer, JobState
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claim_all,
    claimed_job,
    settle,
)
from tests.support.snapshots import GONE, changes, snapshot

ASKED = {"a": 'ask 3600000 10000 {"state":"cancelled"}'}
OVER = {
    "jobs": GONE,
    "running:w1": GONE,
    "cancel_requests": GONE,
    "finished": {"a"},
    "recent_results": ["a"],
    "results": {"a": '<ms> 3600000 {"state":"cancelled"}'},
}


def test_a_job_that_runs_is_asked(redis, broker, readers, access):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert access.cancel(job.id) is CancelAnswer.ASKED

    assert changes(before, snapshot(redis, times=False)) == {"cancel_requests": ASKED}
    assert readers.find(job.id).state is JobState.RUNNING
    assert readers.find(job.id).is_stopping


@pytest.mark.parametrize("verb", ["retry", "bury", "release"])
def test_whatever_a_worker_tells_of_it_it_is_cancelled(redis, broker, verb):
    job = asked_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, verb, job) == []

    assert changes(before, snapshot(redis, times=False)) == OVER | {"stats": {"enqueued": 1, "cancelled": 1}}
    assert claim_all(broker) == []


def test_a_job_that_succeeds_before_it_notices_has_succeeded(redis, broker, readers):
    job = asked_job(broker, "a")

    settle(broker, "ack", job, outcome='{"state":"succeeded"}')

    assert readers.find(job.id).state is JobState.SUCCEEDED
    assert "cancel_requests" not in snapshot(redis)


def test_the_supervisor_hears_of_its_own(broker, access):
    job, other = asked_job(broker, "a"), claimed_job(broker, "b", worker="w2")
    access.cancel(other.id, terminate=True)

    notes = {WORKER: {}, "w3": {}}
    result = broker.heartbeat([QUEUE, "low"], notes, promote=False)

    assert result.cancel_requests == [(WORKER, job.id, "ask")]
    assert broker.heartbeat([QUEUE], {"w2": {}}, promote=False).cancel_requests == [("w2", other.id, "terminate")]
