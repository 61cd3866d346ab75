"""rtq_cancel: taking out jobs that wait."""

import pytest

from django_rtq.job import JobState
from tests.management.commands import run
from tests.seeds import claimed_job, dead_job, queued_job, retrying_job, scheduled_job


@pytest.mark.parametrize("seed", [queued_job, scheduled_job, retrying_job])
def test_a_job_that_waits_is_cancelled(broker, inspector, seed):
    job = seed(broker)

    ran = run("rtq_cancel", job.id, job.id)

    assert (ran.code, ran.out, ran.err) == (0, f"Cancelled job {job.id}.\n", "")
    assert inspector.find(job.id).state is JobState.CANCELLED


def test_what_cannot_be_cancelled_is_told_and_the_rest_is_done(broker, inspector):
    dead, running, waiting = dead_job(broker), claimed_job(broker), queued_job(broker, queue="other")

    ran = run("rtq_cancel", dead.id, "unknown", running.id, waiting.id)

    assert ran.out == f"Cancelled job {waiting.id}.\n"
    assert [line.split(": ")[0] for line in ran.err.splitlines()] == [
        f"Job {dead.id}",
        "Job unknown",
        f"Job {running.id}",
    ]
    assert (ran.code, ran.error) == (1, "3 of 4 jobs could not be cancelled.")
    assert inspector.find(running.id).state is JobState.RUNNING


@pytest.mark.parametrize("text", ["", "a\nb", "\udc80", "x" * 201])
def test_what_is_no_id_is_refused(text):
    assert "is not the id of a job" in run("rtq_cancel", text).error
