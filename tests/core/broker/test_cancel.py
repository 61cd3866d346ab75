"""queued, scheduled, retrying -> cancelled."""

from tests.support.jobs import (
    QUEUE,
    claim,
    queued_job,
)
from tests.support.snapshots import GONE, changes, snapshot

OUTCOME = {"finished": {"a"}, "recent_results": ["a"], "results": {"a": '<ms> 3600000 {"state":"cancelled"}'}}


def test_the_only_job_of_a_lane_leaves_nothing(redis, broker, access):
    job = queued_job(broker, "a", client="x", priority=5)
    before = snapshot(redis, times=False)

    access.cancel(job.id)

    assert changes(before, snapshot(redis, times=False)) == {
        **OUTCOME,
        "jobs": GONE,
        "lane:5:x": GONE,
        "lanes": GONE,
        "ring:5": GONE,
        "bands": GONE,
        "stats": {"enqueued": 1, "cancelled": 1},
    }


def test_a_lane_waits_since_its_first_job(redis, broker, access):
    first, second = queued_job(broker, client="x"), queued_job(broker, client="x")
    redis.hset(broker.keys.of(QUEUE).waiting_since, second.id, 1000)

    access.cancel(first.id)

    assert snapshot(redis)["lanes"] == {"0:x": 1000}
    assert snapshot(redis)["lane:0:x"] == [second.id]


def test_one_call_removes_a_bounded_number_of_names(redis, broker, access):
    jobs = [queued_job(broker, client="x") for _ in range(152)]
    for job in jobs[1:-1]:
        access.cancel(job.id)

    access.cancel(jobs[0].id)

    assert redis.llen(broker.keys.of(QUEUE).lane + b"0:x") == 52
    assert claim(broker) == [jobs[-1].id]
