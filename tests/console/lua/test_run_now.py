"""A person lets a job run before its time."""

import pytest

from django_rtq.exceptions import JobNotFound, WrongState
from tests.support.jobs import (
    QUEUE,
    claim,
    held_job,
    new_job,
    settle,
)
from tests.support.snapshots import snapshot


def test_who_waits_for_the_end_of_one_like_it_goes_on_waiting(redis, broker, readers):
    first = held_job(broker, successor="successor")
    (successor,) = (job_id.decode() for job_id in redis.zrange(broker.keys.of(QUEUE).scheduled, 0, -1))
    before = snapshot(redis)

    with pytest.raises(WrongState, match=f"{successor} waits until job {first.id} has ended: only one"):
        readers.actions.run_now(successor)

    assert snapshot(redis) == before
    settle(broker, "ack", first)
    readers.actions.run_now(successor)
    assert claim(broker) == [successor]


def test_a_job_that_is_not_there_is_not_found(redis, broker, readers):
    broker.register_queues([QUEUE])

    with pytest.raises(JobNotFound):
        readers.actions.run_now(new_job().id)
