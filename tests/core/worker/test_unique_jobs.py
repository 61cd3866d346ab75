"""Unique jobs with real workers and callers: one is pending at a time, and a change causes one more run (G9)."""

import os
import subprocess
import sys

from tests.app.unique_tasks import keep_up
from tests.support.forked_commands import ROOT

CALLERS, EACH = 2, 250

CALL = f"""
import django
django.setup()
from tests.app.unique_tasks import keep_up
print(*(keep_up.delay("a", number).id for number in range({EACH})))
"""


def call_in_processes(redis_server, journal):
    """Several hundred calls that are alike, from several processes at once. Answers the ids that they were given."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RTQ_REDIS_URL": redis_server.url,
        "RTQ_TEST_OPTIONS": "{}",
    }
    callers = [
        subprocess.Popen([sys.executable, "-c", CALL], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(CALLERS)
    ]
    return [job_id for caller in callers for job_id in caller.communicate(timeout=120)[0].split()]


def test_a_burst_while_it_runs_makes_one_more_run(redis, redis_server, rtq_worker, journal):
    first = keep_up.delay("a", "first", "gate")
    rtq_worker("--processes", 2)
    journal.wait("start", "a-first")

    ids = call_in_processes(redis_server, journal)
    keep_up.delay("a", "last")
    journal.open("gate")

    assert set(ids) == {first.id}
    journal.wait("end", "a-last")
    keep_up.delay("b", 0)
    journal.wait("end", "b-0")
    assert journal.names("start") == ["a-first", "a-last", "b-0"]


def test_it_keeps_others_out_through_the_death_of_its_worker(redis, rtq_worker, journal):
    job = keep_up.delay("a", "first", "gate")
    worker = rtq_worker()
    journal.wait("start", "a-first")
    keep_up.delay("a", "last")

    os.kill(worker.child, 9)
    journal.wait("start", "a-first", times=2)
    again = keep_up.delay("a", "very last")
    journal.open("gate")
    journal.wait("end", "a-very last")

    assert (again.id, again.duplicate) == (job.id, True)
    assert journal.names("start") == ["a-first", "a-first", "a-very last"]
