"""Delayed jobs while clocks jump, schedulers die and Redis restarts: none is lost, none runs early (G1, G7)."""

import hashlib
import random
import time

import pytest

from tests.app import tasks
from tests.core.worker.conservation import is_empty
from tests.support.jobs import QUEUE
from tests.support.waiting import wait_until

SCHEDULED = f"{{rtq:{QUEUE}}}:scheduled"
TICKING = hashlib.sha256(b"tick").hexdigest()[:20].encode()  # in the ids of its jobs
ROUNDED = 0.0015  # seconds; the server counts whole milliseconds
TICK = {"task": "tests.app.tasks.note", "every": 0.2, "args": ["tick"], "missed": "all"}


def delayed(names, *, seconds, chance, together=1):
    """Jobs that are due at random; name -> before which moment of the monotonic clock it must not start."""
    due = {}
    for first in range(0, len(names), together):
        group, delay = names[first : first + together], chance.uniform(*seconds)
        due |= dict.fromkeys(group, time.monotonic() + delay)
        tasks.note.using(run_after=delay).delay_many([((name,), {}) for name in group])
    return due


@pytest.mark.usefixtures("broker")
def test_a_clock_of_a_worker_that_jumps_changes_nothing(redis, rtq_worker, journal):
    """Its wall clock is patched: it shows another hour of another day at each look. Monotonic clocks do not jump."""
    started = time.monotonic()
    workers = [
        rtq_worker(SCHEDULES={"tick": TICK}, LEASE_SECONDS=60, environment={"RTQ_TEST_CLOCK": "jumping"})
        for _ in range(2)
    ]
    due = delayed([f"job-{n}" for n in range(60)], seconds=(0.2, 2.0), chance=random.Random(1))
    wait_until(lambda: set(due) <= set(journal.names("end")) and journal.ends("tick") >= 10)
    for worker in workers:
        assert worker.stop() == 0
    seconds = time.monotonic() - started

    jobs = [entry for entry in journal.entries("start") if entry.name != "tick"]
    assert sorted(entry.name for entry in jobs) == sorted(due)
    assert all(entry.at > due[entry.name] - ROUNDED for entry in jobs)
    assert max(entry.at - due[entry.name] for entry in jobs) < 60 / 3  # no heartbeat had to help
    slots = [int(job_id[:12], 16) for job_id in redis.smembers(f"{{rtq:{QUEUE}}}:finished") if TICKING in job_id]
    assert sorted(slots) == list(range(min(slots), max(slots) + 1, 200))
    assert len(slots) <= seconds / 0.2 + 2


def test_one_of_many_schedulers_may_be_killed_while_many_jobs_fall_due(redis, rtq_worker, broker, journal):
    workers = [rtq_worker("--processes", 1) for _ in range(3)]
    due = delayed([f"job-{n}" for n in range(600)], seconds=(0.2, 3.0), chance=random.Random(2))
    wait_until(lambda: journal.starts() > 150)
    workers[0].kill_group(9)
    wait_until(lambda: not redis.zcard(SCHEDULED))
    wait_until(lambda: is_empty(redis))
    for worker in workers[1:]:
        assert worker.stop() == 0

    assert set(journal.names()) == set(due)
    twice = [name for name in due if journal.starts(name) > 1]
    assert len(twice) <= 128  # what the killed one had claimed, and not acknowledged
    assert all(entry.at > due[entry.name] - ROUNDED for entry in journal.entries("start"))
