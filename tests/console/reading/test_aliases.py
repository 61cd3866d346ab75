"""What is done to a task is done to jobs under its other names, too."""

import pytest

from django_rtq import task
from django_rtq.console.reading.selection import Selection
from tests.console.lua.test_dead_letters import bury
from tests.console.lua.test_task_metrics import tell
from tests.support import sweeps
from tests.support.jobs import (
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
)

NEW, OLD = "aliases.new", "aliases.old"


def body(name):
    return f'{{"task":"{name}","args":[],"kwargs":{{}}}}'


@task(name=NEW, aliases=[OLD])
def ship():
    """A task that was renamed."""


def test_a_pause_and_its_end(broker, rtq):
    jobs = [queued_job(broker, body=body(name)) for name in (OLD, NEW)]
    other = queued_job(broker, body=body("aliases.older"))

    assert rtq.tasks[NEW].pause() == [QUEUE]
    assert claim_all(broker) == [other.id]
    assert rtq.tasks[NEW].pause() == []

    assert rtq.tasks[NEW].resume() == [QUEUE]
    assert claim(broker, 5) == [job.id for job in jobs]


def test_one_name_alone_may_be_paused(broker, rtq):
    job = queued_job(broker, body=body(NEW))
    queued_job(broker, body=body(OLD))

    rtq.tasks[OLD].pause()

    assert claim(broker, 5) == [job.id]


@pytest.mark.parametrize("wanted", [NEW, f"={NEW}", "new"])
def test_all_waiting_jobs_are_cancelled(broker, readers, wanted):
    for name in (NEW, OLD):
        queued_job(broker, body=body(name))
        scheduled_job(broker, body=body(name))
    other = queued_job(broker, body=body("aliases.older"))

    result = sweeps.run(readers, "cancel", task=wanted)

    assert len(result.done) == 4
    assert claim_all(broker) == [other.id]


@pytest.mark.parametrize("state", ["queued", "scheduled", "dead", "finished"])
def test_a_filter_finds_them(broker, readers, state):
    make = {"queued": queued_job, "scheduled": scheduled_job, "dead": dead_job, "finished": claimed_job}[state]
    for name in (NEW, OLD, "aliases.older"):
        job = make(broker, body=body(name))
        if state == "finished":
            settle(broker, "ack", job, outcome=f'{{"state":"succeeded","task":"{name}"}}')

    page = readers.search([(QUEUE, state)], filter=Selection(task=f"={NEW}")).page()

    assert sorted(job.task for job in page.jobs) == [NEW, OLD]


def test_its_jobs_and_dead_letters_are_counted(broker, readers):
    names = [NEW, OLD, OLD, "aliases.older"]
    for n, name in enumerate(names):
        bury(broker, name, kind="a.B")
        retrying_job(broker, body=body(name))
        claimed_job(broker, body=body(name), worker=f"w{n}", queue="other")
    for name in names:
        queued_job(broker, body=body(name))
        scheduled_job(broker, body=body(name))

    found = readers.tasks.get(NEW)

    here, there = sorted(found.queues, key=lambda each: each.queue.name == "other")
    assert (here.queued, here.scheduled, here.retrying, here.dead) == (3, 3, 3, 3)
    assert there.running == 3
    assert {group.task: group.count for group in found.groups} == {NEW: 1, OLD: 2}


def test_its_runs_are_counted(broker, readers):
    tell(broker, f"done {NEW}", 5, f"done {OLD}", 3, "done aliases.older", 1)

    assert [readers.tasks.get(name).total.done for name in (NEW, OLD)] == [8, 3]
    assert readers.tasks.get(NEW).total.done == 8  # with what it remembers
