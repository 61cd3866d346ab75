"""rtq_jobs cancel and run: jobs that wait."""

import json

import pytest

from tests.support.commands import Terminal, run
from tests.support.jobs import claimed_job, dead_job, finished_job, queued_job, retrying_job, scheduled_job


def test_what_cannot_be_cancelled_is_told_and_the_rest_is_done(broker, readers):
    dead, over, waiting = dead_job(broker), finished_job(broker), queued_job(broker, queue="other")

    ran = run("rtq_jobs", "cancel", dead.id, "unknown", over.id, waiting.id)

    assert ran.out == "1 job was cancelled.\n"
    assert [" ".join(line.split()[:2]) for line in ran.err.splitlines()] == [
        f"Job {dead.id}",
        "Job unknown",
        f"Job {over.id}",
    ]
    assert (ran.code, ran.error) == (1, "3 of 4 jobs could not be cancelled.")


@pytest.mark.parametrize(
    ("arguments", "text", "how"),
    [
        ([], "1 job was asked to stop.\n", b"ask"),
        (
            ["--terminate"],
            "1 job was asked to stop. If it does not, its process is killed.\n",
            b"terminate",
        ),
    ],
)
def test_a_job_that_runs_is_asked_to_stop(redis, broker, arguments, text, how):
    running = claimed_job(broker)

    ran = run("rtq_jobs", "cancel", running.id, *arguments)

    assert (ran.code, ran.out, ran.err) == (0, text, "")
    assert redis.hget("{rtq:default}:cancel_requests", running.id).startswith(how + b" ")


def test_for_programs_there_is_json(broker):
    dead, running, waiting = dead_job(broker), claimed_job(broker), queued_job(broker, queue="other")

    ran = run("rtq_jobs", "cancel", "--json", dead.id, running.id, waiting.id)

    assert ran.code == 1
    assert json.loads(ran.out) == {
        "jobs": {running.id: "asked", waiting.id: "cancelled"},
        "failed": {dead.id: f"Job {dead.id} is dead: discard it instead."},
    }


@pytest.mark.parametrize("text", ["", "a\nb", "\udc80", "x" * 201])
def test_what_is_no_id_is_refused(broker, text):
    assert run("rtq_jobs", "cancel", text).code == 1


@pytest.fixture
def jobs(broker):
    """Jobs of two clients and two queues, in three states. Those of acme are of the task shop.ship."""
    acme = {"client": "acme", "body": '{"task":"shop.ship"}'}
    return {
        "acme running": claimed_job(broker, queue="busy", **acme).id,
        "other retrying": retrying_job(broker, client="other").id,
        "acme queued": queued_job(broker, **acme).id,
        "acme scheduled": scheduled_job(broker, **acme).id,
        "other queued": queued_job(broker, client="other", queue="bulk").id,
    }


def states(readers, jobs):
    return {name: str(readers.find(job_id).state) for name, job_id in jobs.items()}


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (["--client", "acme"], ["acme queued", "acme scheduled"]),
        (["--queue", "bulk"], ["other queued"]),
        (["--state", "retrying,scheduled"], ["acme scheduled", "other retrying"]),
        (["--all"], ["acme queued", "acme scheduled", "other queued", "other retrying"]),
        (["--all", "--limit", "1"], ["other queued"]),  # of the first queue
        (["--client", "nobody"], []),
        (["--task", "ship"], ["acme queued", "acme scheduled"]),
        (["--task", "ship", "--client", "other"], []),
        (["--task", "ship", "--queue", "bulk"], []),
        (["--task", "shop.ship", "--state", "queued"], ["acme queued"]),
    ],
)
def test_jobs_that_match_are_cancelled(jobs, readers, options, taken):
    before = states(readers, jobs)

    ran = run("rtq_jobs", "cancel", *options, "--no-input")

    assert (ran.code, ran.out) == (0, f"{len(taken)} job{' was' if len(taken) == 1 else 's were'} cancelled.\n")
    assert states(readers, jobs) == {**before, **dict.fromkeys(taken, "cancelled")}


def test_delayed_jobs_that_match_are_queued_now(jobs):
    assert run("rtq_jobs", "run", "--client", "acme", "--json").json == {
        "jobs": {jobs["acme scheduled"]: "queued"},
        "failed": {},
    }
    assert run("rtq_jobs", "run", "--all").out == "1 job is queued now.\n"


def test_progress_is_shown_on_a_terminal(broker):
    for _ in range(100):
        scheduled_job(broker)

    shown = run("rtq_jobs", "run", "--all", err=Terminal()).err

    assert "Done: 100 of 100" in shown
