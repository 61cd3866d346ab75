"""All that is known of one job."""

import json

import pytest

from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import JobNotFound
from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    suspect_job,
)
from tests.support.mutant import Mutant, mutated
from tests.support.snapshots import snapshot

BODY = '{"task": "shop.tasks.pay", "args": [1, []], "kwargs": {"a": 2}}'


@pytest.mark.parametrize(
    ("seed", "state", "counts"),
    [
        (queued_job, JobState.QUEUED, (0, 0, 0)),
        (scheduled_job, JobState.SCHEDULED, (0, 0, 0)),
        (claimed_job, JobState.RUNNING, (0, 0, 1)),
        (retrying_job, JobState.RETRYING, (1, 0, 1)),
        (suspect_job, JobState.QUEUED, (0, 1, 1)),
        (dead_job, JobState.DEAD, (1, 0, 1)),
    ],
)
def test_a_live_job_is_told_with_its_state_and_call(redis, broker, access, seed, state, counts):
    job = seed(broker, body=BODY, client="acme", priority=5)
    before = snapshot(redis)

    details = access.find(job.id)

    assert (details.id, details.queue, details.state) == (job.id, QUEUE, state)
    assert (details.task, details.args, details.kwargs) == ("shop.tasks.pay", [1, []], {"a": 2})
    assert (details.client, details.priority) == ("acme", 5)
    assert (details.failures, details.crashes, details.attempt) == counts
    assert len(details.errors) == details.failures + details.crashes
    assert snapshot(redis) == before


def test_moments_are_told_where_there_are_any(redis, broker, access):
    scheduled, dead, queued = (access.find(seed(broker).id) for seed in (scheduled_job, dead_job, queued_job))

    assert scheduled.due_at == scheduled.ready_at > queued.ready_at
    assert dead.died_at >= dead.ready_at
    assert (queued.due_at, queued.died_at, scheduled.died_at) == (None, None, None)


@pytest.mark.parametrize(
    ("outcome", "state", "result"),
    [
        ({"result": [1]}, JobState.SUCCEEDED, [1]),
        ({"state": "expired"}, JobState.EXPIRED, None),
        ("", JobState.SUCCEEDED, None),
        ("nonsense", JobState.SUCCEEDED, None),
        ("[1]", JobState.SUCCEEDED, None),
        ({"state": "never heard of"}, JobState.SUCCEEDED, None),
    ],
)
def test_of_a_finished_job_its_outcome_is_told(redis, broker, access, outcome, state, result):
    job = claimed_job(broker)
    settle(broker, "ack", job, outcome=json.dumps(outcome) if isinstance(outcome, dict) else outcome)

    details = access.find(job.id)

    assert (details.state, details.result) == (state, result)


def test_nothing_is_told_of_a_job_whose_outcome_was_dropped(redis, broker, access):
    job = finished_job(broker)
    redis.delete(broker.keys.of(QUEUE).results)

    with pytest.raises(JobNotFound):
        access.find(job.id)


@pytest.mark.parametrize("record", ["{}", "no header", "0 3 1 0 x\nno json", "0 3 1 0 x\n[1]"])
def test_a_record_that_cannot_be_read_is_shown_as_far_as_it_goes(redis, broker, access, record):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    details = access.find(job.id)

    assert (details.state, details.task, details.args) == (JobState.DEAD, "", [])


def test_of_jobs_without_an_outcome_the_last_ones_are_known_to_have_succeeded(broker, access):
    jobs = [claimed_job(broker) for _ in range(3)]
    for job in jobs:
        settle(broker, "ack", job, outcome="")

    with mutated(Mutant("few", "queries/find_job", "DEEP = 100000", "DEEP = 2")):
        assert [access.find(job.id).state for job in jobs[1:]] == [JobState.SUCCEEDED] * 2
        with pytest.raises(JobNotFound):
            access.find(jobs[0].id)
    assert access.find(jobs[0].id).state is JobState.SUCCEEDED
