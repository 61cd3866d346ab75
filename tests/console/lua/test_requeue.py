"""dead -> queued, in its own queue or in another."""

import pytest

from django_rtq.console.reading.actions import How
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import JobState
from django_rtq.signals import job_requeued
from tests.support.jobs import QUEUE, claim_all, dead_job, queued_job
from tests.support.snapshots import live_jobs, snapshot

TARGET = "bulk"
RTQ_OPTIONS = {"QUEUES": {TARGET: {}}}


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_stays_as_it_is(redis, broker, readers, record):
    job = dead_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert readers.actions.done("requeue", QUEUE, [job.id]) == [job.id]

    assert live_jobs(redis) == {job.id: record}
    assert claim_all(broker) == [job.id]


@pytest.mark.parametrize("target", ["", TARGET])
def test_it_is_said_when_there_is_something_to_say(broker, readers, target):
    heard = []
    job_requeued.connect(lambda **said: heard.append((said["job_ids"], said["queue"])), weak=False, dispatch_uid="test")
    job = dead_job(broker)
    try:
        readers.actions.done("requeue", QUEUE, [job.id, "unknown"], How(target=target))
        readers.actions.done("requeue", QUEUE, [job.id], How(target=target))
    finally:
        job_requeued.disconnect(dispatch_uid="test")

    assert heard == [([job.id], target or QUEUE)]


def test_a_full_queue_takes_it(broker, readers, rtq):
    broker.limits.change(TARGET, {"run:queue": "max_waiting=1"})
    queued_job(broker, queue=TARGET)
    job = dead_job(broker)

    rtq.job(job.id).requeue(to=TARGET)

    assert readers.queues.get(TARGET).queued == 2


def test_its_own_queue_is_no_other(redis, broker, rtq):
    job = dead_job(broker)

    assert rtq.job(job.id).requeue(to=QUEUE)

    assert snapshot(redis)["lane:0:"] == [job.id]


def test_a_handle_finds_its_job(broker, access, rtq):
    job = dead_job(broker)
    rtq.job(job.id).requeue(to=TARGET)

    found = JobHandle(job.id, QUEUE).refresh()
    assert (found.queue, found.state, found.failures, len(found.errors)) == (TARGET, JobState.QUEUED, 0, 1)
    assert found.expires_at is None
    assert access.cancel(job.id, QUEUE) == "cancelled"
