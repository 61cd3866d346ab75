"""What ack, expire, retry, bury and release have in common: only the worker that holds a job may settle it."""

import pytest

from django_rtq.core.broker.scripts import AT_ONCE
from django_rtq.exceptions import BrokerError
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    new_job,
    settle,
    settlement,
)
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.parametrize("verb", ["ack", "expire", "retry", "bury", "release"])


def test_a_worker_that_lost_the_job_changes_nothing(redis, broker, verb):
    job = claimed_job(broker)
    broker.reclaim_child(QUEUE, WORKER, [])
    before = snapshot(redis)

    assert settle(broker, verb, job) == [job.id]

    assert snapshot(redis) == before


def test_more_jobs_than_a_call_may_carry_go_in_several(redis, broker, verb):
    first, rest = [new_job() for _ in range(AT_ONCE)], [new_job() for _ in range(30)]
    claimed_jobs(broker, *first)
    claimed_jobs(broker, *rest)

    assert settle(broker, verb, *first, *rest) == []

    assert "running:w1" not in snapshot(redis)


def test_what_was_refused_is_still_in_the_settlement(redis, broker, verb):
    job = claimed_job(broker)
    told = settlement(verb, job)
    redis.answer_once(b"-ERR no\r\n")

    with pytest.raises(BrokerError):
        broker.settle(WORKER, QUEUE, told)

    assert told.job_ids() == {job.id.encode()}
    assert broker.settle(WORKER, QUEUE, told) == []
    assert not told


def test_a_part_that_was_refused_is_still_in_the_settlement(redis, broker, verb, monkeypatch):
    jobs = [new_job() for _ in range(AT_ONCE + 1)]
    claimed_jobs(broker, *jobs[:AT_ONCE])
    claimed_jobs(broker, *jobs[AT_ONCE:])
    told, execute = settlement(verb, *jobs), broker.redis.execute_each
    monkeypatch.setattr(broker.redis, "execute_each", lambda commands: [*execute(commands[:1]), BrokerError("no")])

    fetched = broker.claim(WORKER, [QUEUE], 0, settlements={QUEUE: told})

    assert fetched.error
    assert jobs[AT_ONCE].id.encode() in told.job_ids()
