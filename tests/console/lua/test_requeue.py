"""dead -> queued."""

import pytest

from django_rtq.signals import job_requeued
from tests.support.jobs import (
    ERROR,
    QUEUE,
    claim_all,
    dead_job,
    queued_job,
)
from tests.support.snapshots import GONE, MS, changes, live_jobs, snapshot


def test_it_goes_to_the_end_of_its_lane_with_all_its_attempts(redis, broker, readers):
    job = dead_job(broker, "a", client="x", priority=5, body='{"args": []}')
    queued_job(broker, "first", client="x", priority=5)
    before = snapshot(redis, times=False)

    assert readers.actions.done("requeue", QUEUE, [job.id]) == [job.id]

    assert changes(before, snapshot(redis, times=False)) == {
        "dead": GONE,
        "failures": GONE,
        "lane:5:x": ["first", "a"],
        "waiting_since": {"a": MS},
        "stats": {**before["stats"], "requeued": 1},
    }
    assert before["errors"] == {"a": ERROR + "\n"}  # stays: people want to know what it died of


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_stays_as_it_is(redis, broker, readers, record):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert readers.actions.done("requeue", QUEUE, [job.id]) == [job.id]

    assert live_jobs(redis) == {job.id: record}
    assert claim_all(broker) == [job.id]


def test_it_is_said_when_there_is_something_to_say(broker, readers):
    heard = []
    job_requeued.connect(lambda **said: heard.append((said["job_ids"], said["queue"])), weak=False, dispatch_uid="test")
    job = dead_job(broker)
    try:
        readers.actions.done("requeue", QUEUE, [job.id])
        readers.actions.done("requeue", QUEUE, [job.id])
    finally:
        job_requeued.disconnect(dispatch_uid="test")

    assert heard == [([job.id], QUEUE)]
