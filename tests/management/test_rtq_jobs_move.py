"""rtq_jobs move: jobs go to another queue."""

import json

import pytest

from django_rtq.jobs.job import JobState
from tests.management.commands import body, run, sit_at_terminal
from tests.support.jobs import (
    QUEUE,
    claimed_job,
    dead_job,
    entered_job,
    queued_job,
    retrying_job,
    scheduled_job,
    unique_job,
)

TARGET = "bulk"
NOBODY = "No worker serves queue bulk now: they wait. Start one:  python manage.py rtq_worker --queues bulk\n"


@pytest.fixture(autouse=True)
def target(broker):
    broker.register_queues([QUEUE, TARGET])


@pytest.mark.parametrize(
    ("seed", "state"),
    [
        (queued_job, JobState.QUEUED),
        (scheduled_job, JobState.SCHEDULED),
        (retrying_job, JobState.RETRYING),
        (dead_job, JobState.QUEUED),
    ],
)
def test_a_job_that_does_not_run_is_moved(broker, inspector, seed, state):
    job = seed(broker)

    ran = run("rtq_jobs", "move", job.id, "--to", TARGET)

    assert (ran.code, ran.out, ran.err) == (0, f"Moved job {job.id} to queue bulk.\n", NOBODY)
    found = inspector.find(job.id)
    assert (found.queue, found.state) == (TARGET, state)


def test_where_a_worker_serves_the_queue_nothing_is_said_of_it(broker):
    claimed_job(broker, queue=TARGET)
    job = queued_job(broker)

    assert run("rtq_jobs", "move", job.id, "--to", TARGET).err == ""


def test_a_paused_queue_is_told(broker, inspector):
    inspector.pause(TARGET)
    job = queued_job(broker)

    assert "Queue bulk is paused: they wait until it is resumed." in run("rtq_jobs", "move", job.id, "--to", TARGET).err


def test_what_cannot_be_moved_is_told_and_the_rest_is_done(broker):
    running = claimed_job(broker)
    there, waiting = queued_job(broker, queue=TARGET), queued_job(broker, queue="other")

    ran = run("rtq_jobs", "move", running.id, there.id, "unknown", waiting.id, "--to", TARGET)

    assert ran.out == f"Moved job {waiting.id} to queue bulk.\n"
    assert f"Job {running.id} is running. Only jobs that do not run can be moved.\n" in ran.err
    assert f"Job {there.id} is in queue bulk already.\n" in ran.err
    assert (ran.code, ran.error) == (1, "3 of 4 jobs could not be moved.")


def test_all_that_match_are_moved_after_a_question(broker, inspector, monkeypatch):
    sit_at_terminal(monkeypatch, "yes")
    reports = [queued_job(broker, body=body("shop.make_report")) for _ in range(3)]
    queued_job(broker, body=body())
    there = queued_job(broker, queue=TARGET, body=body("shop.make_report"))

    ran = run("rtq_jobs", "move", "--task", "make_report", "--to", TARGET)

    assert ran.out == "Moved 3 jobs to queue bulk.\n"
    assert "This moves 3 jobs to queue bulk. Type 'yes' to continue:" in ran.err
    assert [inspector.find(job.id).queue for job in (*reports, there)] == [TARGET] * 4
    assert inspector.queues.get(QUEUE).queued == 1


def test_dead_letters_are_only_meant_if_they_are_named(broker, inspector):
    dead, waiting = dead_job(broker), queued_job(broker)

    run("rtq_jobs", "move", "--all", "--to", TARGET, "--no-input")
    assert (inspector.find(dead.id).queue, inspector.find(waiting.id).queue) == (QUEUE, TARGET)
    run("rtq_jobs", "move", "--all", "--state", "dead", "--to", TARGET, "--no-input")
    assert inspector.find(dead.id).queue == TARGET


def test_for_programs_there_is_json(broker):
    job = queued_job(broker)

    ran = run("rtq_jobs", "move", job.id, "unknown", "--to", TARGET, "--json")

    found = json.loads(ran.out)
    assert found["jobs"] == {job.id: "moved"}
    assert list(found["failed"]) == ["unknown"]


def test_an_unknown_queue_is_likely_a_typo(broker):
    job = queued_job(broker)

    ran = run("rtq_jobs", "move", job.id, "--to", "bulkk")

    assert (ran.code, ran.error) == (
        1,
        "No queue 'bulkk' is declared, or has been used yet. Did you mean 'bulk'?",
    )


def test_both_queues_may_not_be_the_same(broker):
    ran = run("rtq_jobs", "move", "--queue", TARGET, "--to", TARGET, "--no-input")

    assert (ran.code, ran.error) == (64, "--queue and --to are both bulk.")


def test_somebody_has_to_say_which_jobs(broker):
    assert run("rtq_jobs", "move", "--to", TARGET).code == 64


def test_how_many_of_all_could_not_be_moved_is_told_with_the_reason_of_the_first(broker):
    for digest in "ab":
        broker.enqueue_unique(TARGET, [unique_job(digest=digest)])
        entered_job(broker, digest=digest)
    queued_job(broker)

    ran = run("rtq_jobs", "move", "--queue", QUEUE, "--all", "--to", TARGET, "--no-input")

    assert (ran.code, ran.out) == (0, "Moved 1 job to queue bulk.\n")
    assert "2 jobs could not be moved. The first one: Job " in ran.err
    assert "is unique, and job " in ran.err
