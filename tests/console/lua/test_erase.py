"""queued, scheduled, retrying, dead -> gone, and of finished jobs what is kept."""

import pytest

from tests.support.jobs import (
    QUEUE,
    claim_all,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.support.snapshots import changes, snapshot


def erase(readers, job):
    return readers.actions.act("erase", QUEUE, [job.id])[job.id]


@pytest.mark.parametrize("seed", [queued_job, scheduled_job, retrying_job, dead_job, finished_job])
def test_nothing_is_left_of_a_job_that_does_not_run(redis, broker, readers, seed):
    job = seed(broker, client="x")
    keys = broker.keys.of(QUEUE)
    redis.rpush(keys.log_of(job.id), "line")

    assert erase(readers, job) == "erased"

    after = snapshot(redis)
    assert not {"jobs", "failures", "errors", "dead", "scheduled", "retrying", "results", "log", "lanes"} & set(after)
    assert erase(readers, job) == "missing"
    assert claim_all(broker) == []


def test_others_stay(redis, broker, readers):
    job, other = queued_job(broker, client="x"), queued_job(broker, client="x")

    erase(readers, job)

    assert claim_all(broker) == [other.id]


def test_a_running_job_goes_on(redis, broker, readers):
    job = claimed_job(broker)
    before = snapshot(redis)

    assert erase(readers, job) == "running"

    assert changes(before, snapshot(redis)) == {}
