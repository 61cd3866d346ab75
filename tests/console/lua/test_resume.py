"""A paused queue is worked on again."""

from tests.support.jobs import QUEUE, claim, queued_job
from tests.support.snapshots import GONE, changes, snapshot


def test_a_worker_is_woken(redis, broker, rtq):
    job = queued_job(broker)
    rtq.queues[QUEUE].pause()
    redis.delete(broker.keys.of(QUEUE).work_signal)
    before = snapshot(redis)

    assert rtq.queues[QUEUE].resume()

    assert changes(before, snapshot(redis)) == {"paused": GONE, "work_signal": {"work": 0}}
    assert claim(broker) == [job.id]
