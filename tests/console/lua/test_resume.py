"""A paused queue is worked on again."""

from tests.support.jobs import QUEUE, claim, queued_job
from tests.support.snapshots import GONE, changes, snapshot


def test_a_worker_is_woken(redis, broker, readers):
    job = queued_job(broker)
    readers.pause(QUEUE)
    redis.delete(broker.keys.of(QUEUE).work_signal)
    before = snapshot(redis)

    assert readers.resume(QUEUE)

    assert changes(before, snapshot(redis)) == {"paused": GONE, "work_signal": {"work": 0}}
    assert claim(broker) == [job.id]


def test_the_second_time_a_worker_looks_in_vain(redis, broker, readers):
    readers.pause(QUEUE)
    readers.resume(QUEUE)
    before = snapshot(redis)

    assert not readers.resume(QUEUE)

    assert snapshot(redis) == before
