"""queued, scheduled, retrying -> cancelled, for all jobs of a client."""

import pytest

from django_rtq import signals
from django_rtq.console.reading.actions import LATEST
from django_rtq.core.jobs.job import JobState
from tests.support import sweeps
from tests.support.jobs import QUEUE, claimed_job, queued_job, retrying_job, scheduled_job
from tests.support.snapshots import live_jobs, snapshot


def cancel_all(inspector, client, queues=(QUEUE,), until_ms=LATEST):
    """The ids of all steps."""
    return sweeps.run(inspector, "cancel", queues=queues, client=client, until_ms=until_ms).done


def test_the_jobs_of_a_client_are_cancelled_with_an_outcome(redis, broker, inspector):
    told = []
    kept = [claimed_job(broker, client="x"), queued_job(broker, client="y"), scheduled_job(broker, client="y")]
    jobs = [seed(broker, client="x", priority=5) for seed in (scheduled_job, retrying_job, queued_job)]
    jobs.append(queued_job(broker, client="x"))

    signals.job_cancelled.connect(note := lambda job_id, **_: told.append(job_id))
    assert set(cancel_all(inspector, "x")) == {job.id for job in jobs}
    signals.job_cancelled.disconnect(note)

    assert set(told) == {job.id for job in jobs}
    assert {inspector.find(job.id).state for job in jobs} == {JobState.CANCELLED}
    assert set(live_jobs(redis)) == {job.id for job in kept}
    (found,) = inspector.clients.get("x", [QUEUE])
    assert (found.queued, found.scheduled) == (0, 0)
    assert cancel_all(inspector, "x") == []


def test_what_was_cancelled_before_is_not_cancelled_again(redis, broker, inspector):
    before, job = (queued_job(broker, client="x") for _ in range(2))
    inspector.cancel(before.id, QUEUE)

    assert cancel_all(inspector, "x") == [job.id]
    assert "cancelled_in_lane" not in snapshot(redis)


@pytest.mark.parametrize("hold", ["paused client", "full client", "paused queue"])
def test_the_client_has_no_job_afterwards(redis, broker, inspector, hold):
    queued_job(broker, client="y")
    for _ in range(150):
        queued_job(broker, client="x")
        queued_job(broker, client="x", priority=5)
    {
        "paused client": lambda: inspector.limits.pause_client(QUEUE, "x"),
        "full client": lambda: inspector.limits.set_client(QUEUE, "x", max_running=0),
        "paused queue": lambda: inspector.pause(QUEUE),
    }[hold]()

    assert len(cancel_all(inspector, "x")) == 300

    assert [each.queued for each in inspector.clients.get("x", [QUEUE])] in ([], [0])
    assert not {"cancelled_in_lane", "lane:0:x", "lane:5:x"} & set(snapshot(redis))
