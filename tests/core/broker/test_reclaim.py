"""running, lease over -> queued, or dead."""

import json

import pytest

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    let_lapse,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def lapsed_job(broker, *names, **options):
    """A job of a worker that is silent for too long."""
    job = claimed_job(broker, *names, **options)
    let_lapse(broker, options.get("worker", WORKER))
    return job


def test_a_silent_workers_job_is_queued_again_and_a_crash_counted(redis, broker):
    job = lapsed_job(broker, "a", client="x")
    before = snapshot(redis, times=False)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "queued")])

    after = snapshot(redis, times=False)
    line = json.loads(after["errors"]["a"].replace(MS, "0"))
    assert line["error_class"] == "django_rtq.exceptions.WorkerLost"
    assert (line["attempt"], line["worker"]) == (1, WORKER)
    assert line["error"] == "The worker died while it ran this job: crash 1, 3 allowed."
    assert changes(before, after) == {
        "running:w1": GONE,
        "workers": GONE,
        "signed_on": GONE,
        "lane:0:x": ["a"],
        "lanes": {"0:x": MS},
        "ring:0": {"x": 2},
        "bands": {"0": 0},
        "turn": "2",
        "work_signal": {"work": 0},
        "crashes": {"a": "1"},
        "errors": after["errors"],
        "stats": {"enqueued": 1, "reclaimed": 1, "failed": 1, "crashed": 1},
    }


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_may_not_crash_at_all(redis, broker, record):
    job = lapsed_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "dead")])
