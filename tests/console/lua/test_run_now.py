"""A person lets a job run before its time."""

import pytest

from django_rtq.exceptions import WrongState
from tests.support.jobs import (
    QUEUE,
    claim,
    claimed_job,
    dead_job,
    finished_job,
    held_job,
    queued_job,
    scheduled_job,
    settle,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_a_scheduled_job_is_queued(redis, broker, readers):
    job = scheduled_job(broker, "a", client="x")
    before = snapshot(redis, times=False)

    readers.actions.run_now(job.id)

    assert changes(before, snapshot(redis, times=False)) == {
        **dict.fromkeys(["scheduled", "scheduled_by_client", "scheduled_by_client:x"], GONE),
        "bands": {"0": 0},
        "lane:0:x": ["a"],
        "lanes": {"0:x": MS},
        "ring:0": {"x": 1},
        "waiting_since": {"a": MS},
        "turn": "1",
        "work_signal": {"work": 0},
    }
    assert claim(broker) == [job.id]


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


@pytest.mark.parametrize("seed", [queued_job, claimed_job, dead_job, finished_job])
def test_what_does_not_wait_for_a_time_is_left_alone(redis, broker, readers, seed):
    job = seed(broker)
    before = snapshot(redis)

    with pytest.raises(WrongState, match=job.id):
        readers.actions.run_now(job.id)

    assert snapshot(redis) == before
