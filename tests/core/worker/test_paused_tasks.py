"""Workers leave the jobs of paused tasks alone, and run those of others."""

import os
import signal

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.support.waiting import wait_until

NOTE, SLEEP = tasks.note.name, tasks.sleep.name
RUNNERS = [("--processes", 2), ("--concurrency", 4)]


@pytest.mark.parametrize("slots", RUNNERS)
def test_jobs_of_other_tasks_go_on(rtq_worker, journal, inspector, slots):
    inspector.task_pauses.pause_task(NOTE, "default", by="eve")
    paused = [tasks.note.using(client=f"c{number % 3}").delay(f"paused-{number}") for number in range(200)]
    others = [tasks.sleep.using(client=f"c{number % 3}").delay(f"other-{number}", 0) for number in range(50)]
    rtq_worker(*slots)
    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in others))
    wait_until(lambda: inspector.queues.get("default").held == 200)
    assert {job.state for job in paused} == {JobState.SCHEDULED}
    assert not [entry for entry in journal.entries("start") if entry.name.startswith("paused")]

    assert inspector.task_pauses.resume_task(NOTE) == ["default"]

    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in paused))
    assert inspector.queues.get("default").paused_tasks == ()


def test_what_fails_and_what_crashes_waits_too(rtq_worker, journal, inspector):
    failing, crashing = tasks.attempts.delay("failing", 2), tasks.gate.delay("crashing", "gate")
    rtq_worker("--processes", 2)
    started = journal.wait("start", "crashing")
    wait_until(lambda: failing.state is JobState.SUCCEEDED)
    inspector.task_pauses.pause_task(tasks.gate.name)
    os.kill(started.pid, signal.SIGKILL)
    wait_until(lambda: inspector.queues.get("default").held == 1)
    assert inspector.find(crashing.id).crashes == 1

    journal.open("gate")
    inspector.task_pauses.resume_task(tasks.gate.name)

    wait_until(lambda: crashing.state is JobState.SUCCEEDED)


@pytest.mark.parametrize("slots", RUNNERS)
def test_a_burst_does_not_wait_for_them(rtq_worker, journal, inspector, slots):
    inspector.task_pauses.pause_task(NOTE, "default")
    paused = tasks.note.delay_many([((f"paused-{number}",), {}) for number in range(1200)])
    last = tasks.sleep.delay("last", 0)
    worker = rtq_worker("--burst", *slots, is_ready=False)

    assert worker.wait() == 0

    assert last.state is JobState.SUCCEEDED
    assert inspector.queues.get("default").held == len(paused)
