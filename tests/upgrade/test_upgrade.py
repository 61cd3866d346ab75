"""What the version before this one has written is shown, run and requeued by this one, and both work side by side."""

import json
from collections import Counter
from typing import NamedTuple

import pytest

from django_rtq import JobNotFound, rtq
from django_rtq.console.reading.readers import readers_of
from tests.core.worker.conservation import places, records
from tests.core.worker.overlaps import most_at_once
from tests.support.line_files import whole_lines
from tests.support.nightly import IS_NIGHTLY
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

MAX_RUNNING = 2  # of the queue `limited`: see project_settings.py
SECONDS = 60 if IS_NIGHTLY else 12
STATES = {
    "succeeded": "succeeded",
    "django": "succeeded",
    "crashed": "running",  # by a worker that is dead
    "committed": "running",
    "retrying": "retrying",
    "dead": "dead",
    "expired": "expired",
    "cancelled": "cancelled",
    "scheduled": "scheduled",
    "unique": "scheduled",
    "due": "scheduled",
}


class Note(NamedTuple):
    """A line of the journal."""

    at: int  # nanoseconds
    job: str
    queue: str
    word: str  # start or end
    task: str


def journal(folder):
    """What jobs noted, in order."""
    lines = (line.split(" ") for line in whole_lines(folder / "journal"))
    return sorted(Note(int(at), *words) for at, *words in lines)


def ends(folder):
    """How often each job came to its end."""
    return Counter(note.job for note in journal(folder) if note.word == "end")


def errors(version):
    """What a version logged as an error."""
    return [line for line in whole_lines(version.log) if line.startswith(("ERROR", "CRITICAL"))]


def write_as(old, folder):
    """Let the old version write and run jobs, and die while it runs some. Returns the ids of jobs by kind."""
    old.manage("migrate -v0")
    ids = old.run("write.py", "to_be_run")
    worker = old.start("--queues=*", "--burst")
    assert worker.wait(60) == 0
    ids |= old.run("write.py", "to_be_killed")
    worker = old.start("--queues=crash", "--processes=2")
    wait_until(lambda: "hang" in {note.task for note in journal(folder)})
    (folder / "hangs").touch()
    worker.wait(60)  # `pay` kills all of it
    ids |= old.run("write.py", "to_be_left")
    return ids | old.run("write.py", "outbox", RTQ_REDIS_URL="redis://127.0.0.1:1/0")


def state_of(job_id):
    """ "" while the job is a row of the outbox."""
    try:
        return readers_of().find(job_id).state
    except JobNotFound:
        return ""


def assert_shown(new, ids):
    """The new version shows jobs, results, pauses, limits and schedules, in the admin, too."""
    seen = new.run("look.py", json.dumps(ids))
    for kind, state in STATES.items():
        kept_briefly = {""} if state in {"expired", "cancelled"} else set()  # two minutes: tests may take longer
        assert set(seen["states"][kind]) <= {state} | kept_briefly, kind
    assert set(seen["states"]["queued"]) == {"queued"}
    assert seen["results"] == [[number, "north"] for number in range(3)]
    assert seen["result_values"]
    assert seen["values"] == [True, True]
    assert {tuple(error) for error in seen["errors"]} == {("builtins.ValueError", "this is broken")}
    assert seen["duplicates"] == ids["unique"]
    assert seen["django"] == [2] * len(ids["django"])
    assert seen["pages"] > 40
    assert not seen["failed_pages"]
    tasks, clients, listed = new.manage("rtq_tasks list", "rtq_clients list default", "rtq_schedule list --json")
    assert "default: paused" in tasks
    assert "east" in clients
    schedules = {entry["name"]: entry for entry in json.loads(listed)}
    assert (schedules["nightly"]["enabled"], schedules["weekly"]["enabled"]) == (False, True)


def let_run(new, ids):
    """What was dead, delayed or paused runs now."""
    new.manage(
        "rtq_jobs requeue --all",
        " ".join(["rtq_jobs run", *ids["scheduled"], *ids["unique"], *ids["retrying"]]),
        "rtq_queues resume paused",
        "rtq_clients resume default east",
        "rtq_tasks resume * shop.tasks.second_time",
    )


def test_this_version_goes_on_where_the_one_before_was_stopped(old, new, folder):
    ids = write_as(old, folder)
    outbox = ids.pop("outbox")
    (folder / "mended").touch()
    new.manage("migrate -v0")

    assert_shown(new, ids)
    let_run(new, ids)
    worker = new.start("--queues=*", "--processes=2")
    never = ids["expired"] + ids["cancelled"]
    to_run = {job_id for of_kind in ids.values() for job_id in of_kind if job_id not in never} | set(outbox)
    wait_until(lambda: {state_of(job_id) for job_id in to_run} == {"succeeded"})
    assert {job_id: number for job_id, number in ends(folder).items() if number != 1} == {}
    assert not ends(folder).keys() & set(never)
    assert readers_of().find(*ids["committed"]).result == "paid"
    worker.terminate()
    assert worker.wait(60) == 0
    assert errors(new) == []


def test_both_versions_work_side_by_side(old, new, folder, client):
    old.manage("migrate -v0")
    new.manage("migrate -v0")
    arguments = ("--queues=*", "--processes=2", "--concurrency=2", "--drain-seconds=5")
    producers = [version.start("produce.py", SECONDS, version.name) for version in (old, new)]
    workers = [version.start(*arguments) for version in (old, new)]
    wait_until(lambda: len(list(rtq.workers)) == 4)  # before that a signal would end them at once
    for version in (new, old):  # an upgrade, and the way back
        wanted = len(ends(folder)) + 500
        wait_until(lambda wanted=wanted: len(ends(folder)) > wanted)
        leaving = workers.pop(0)
        workers.append(version.start(*arguments))
        leaving.terminate()
        assert leaving.wait(60) == 0
    for producer in producers:
        assert producer.wait(SECONDS + 60) == 0

    enqueued = set(whole_lines(folder / "enqueued"))
    cancelled = set(whole_lines(folder / "cancelled"))
    asked = set(whole_lines(folder / "asked"))  # these may have ended as cancelled
    wait_until(lambda: enqueued - cancelled - asked <= ends(folder).keys())
    assert len(enqueued) > 1000
    assert cancelled
    assert not cancelled & ends(folder).keys()
    assert {job_id: number for job_id, number in ends(folder).items() if number != 1} == {}
    wait_until(lambda: not records(client) and not places(client))
    limited = [1 if note.word == "start" else -1 for note in journal(folder) if note.queue == "limited"]
    assert 0 < most_at_once(limited) <= MAX_RUNNING
    for worker in workers:
        worker.terminate()
        assert worker.wait(60) == 0
    assert errors(old) == errors(new) == []
