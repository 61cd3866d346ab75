"""Workers keep to the limits of queues and clients, whatever happens to them."""

import os
import signal

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.support.waiting import wait_until

LIMITED = {"QUEUES": {"default": {"client": {"max_running": 2}, "clients": {"big": {"max_running": 3}}}}}


def most_at_once(entries):
    """How many of these jobs ran at the same time, by the journal."""
    running = most = 0
    for entry in entries:
        running += 1 if entry.word == "start" else -1
        most = max(most, running)
    return most


@pytest.mark.parametrize("slots", [("--processes", 4), ("--concurrency", 8)])
def test_clients_run_no_more_than_they_may(rtq_worker, journal, slots):
    jobs = [
        tasks.sleep.using(client=client).delay(f"{client}-{number}", 0.01)
        for number in range(12)
        for client in ("small", "big")
    ]
    rtq_worker(*slots, **LIMITED)
    wait_until(lambda: all(job.state is JobState.SUCCEEDED for job in jobs))

    entries = [entry for word in ("start", "end") for entry in journal.entries(word)]
    for client, most in (("small", 2), ("big", 3)):
        theirs = sorted((each for each in entries if each.name.startswith(client)), key=lambda entry: entry.at)
        assert len(theirs) == 24
        assert 0 < most_at_once(theirs) <= most


def test_a_killed_process_gives_its_places_back(rtq_worker, journal, inspector):
    inspector.limits.set_queue("default", max_running=1)
    first, second = tasks.gate.delay("first", "gate"), tasks.note.delay("second")
    rtq_worker("--processes", 2)
    started = journal.wait("start", "first")
    assert inspector.limits.read("default").running == 1
    journal.open("gate")
    os.kill(started.pid, signal.SIGKILL)
    wait_until(lambda: first.state is second.state is JobState.SUCCEEDED)

    assert inspector.limits.read("default").running == 0


def test_an_idle_worker_wakes_when_a_client_is_resumed(rtq_worker, journal, inspector):
    worker = rtq_worker()
    inspector.limits.pause_client("default", "acme")
    paused = tasks.note.using(client="acme").delay("paused")
    other = tasks.note.using(client="other").delay("other")
    wait_until(lambda: other.state is JobState.SUCCEEDED)
    assert paused.state is JobState.QUEUED
    inspector.limits.resume_client("default", "acme")
    wait_until(lambda: paused.state is JobState.SUCCEEDED)

    assert worker.is_running
