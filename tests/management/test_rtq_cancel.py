"""rtq_cancel: taking out jobs that wait."""

import json

import pytest

from django_rtq.jobs.job import JobState
from tests.management.commands import run
from tests.support.jobs import claimed_job, dead_job, finished_job, queued_job, retrying_job, scheduled_job


@pytest.mark.parametrize("seed", [queued_job, scheduled_job, retrying_job])
def test_a_job_that_waits_is_cancelled(broker, inspector, seed):
    job = seed(broker)

    ran = run("rtq_cancel", job.id, job.id)

    assert (ran.code, ran.out, ran.err) == (0, f"Cancelled job {job.id}.\n", "")
    assert inspector.find(job.id).state is JobState.CANCELLED


def test_what_cannot_be_cancelled_is_told_and_the_rest_is_done(broker, inspector):
    dead, over, waiting = dead_job(broker), finished_job(broker), queued_job(broker, queue="other")

    ran = run("rtq_cancel", dead.id, "unknown", over.id, waiting.id)

    assert ran.out == f"Cancelled job {waiting.id}.\n"
    assert [line.split(": ")[0] for line in ran.err.splitlines()] == [
        f"Job {dead.id}",
        "Job unknown",
        f"Job {over.id}",
    ]
    assert (ran.code, ran.error) == (1, "3 of 4 jobs could not be cancelled.")


@pytest.mark.parametrize(
    ("arguments", "text", "how"),
    [
        ([], "Asked to stop: job {}.\n", b"ask"),
        (["--terminate"], "Its process will be killed, if it still runs: job {}.\n", b"terminate"),
    ],
)
def test_a_job_that_runs_is_asked_to_stop(redis, broker, arguments, text, how):
    running = claimed_job(broker)

    ran = run("rtq_cancel", running.id, *arguments)

    assert (ran.code, ran.out, ran.err) == (0, text.format(running.id), "")
    assert redis.hget("{rtq:default}:cancel_requests", running.id).startswith(how + b" ")


def test_for_programs_there_is_json(broker):
    dead, running, waiting = dead_job(broker), claimed_job(broker), queued_job(broker, queue="other")

    ran = run("rtq_cancel", "--json", dead.id, running.id, waiting.id)

    assert ran.code == 1
    assert json.loads(ran.out) == {
        "jobs": {running.id: "asked", waiting.id: "cancelled"},
        "failed": {dead.id: f"Job {dead.id}: is dead: discard it instead."},
    }


@pytest.mark.parametrize("text", ["", "a\nb", "\udc80", "x" * 201])
def test_what_is_no_id_is_refused(text):
    assert "is not the id of a job" in run("rtq_cancel", text).error
