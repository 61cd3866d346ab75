"""Tasks with exactly_once, run by workers that are killed: their effects are in the database exactly once."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from django_rtq.exceptions import JobFailed
from tests.app import once_tasks
from tests.support.forked_commands import ROOT
from tests.support.waiting import PATIENCE, wait_until

MODULES = ["tasks", "once_tasks"]


@pytest.fixture
def worker(rtq_worker, database):
    """Start a worker that uses the database of the test, which has a table of effects."""
    database.query(once_tasks.CREATE_TABLE)
    return partial(rtq_worker, "--queues", once_tasks.QUEUE, environment=database.environment, TASK_MODULES=MODULES)


def effects(database):
    return sorted(name for (name,) in database.query("SELECT name FROM effects"))


def committed(database):
    return [job_id for (job_id,) in database.query("SELECT job_id FROM django_rtq_committedjob")]


@pytest.mark.parametrize(("moment", "starts"), [("before", 2), ("after", 1)])
def test_a_job_that_is_killed_runs_again_unless_it_has_committed(worker, database, journal, moment, starts):
    running = worker()
    job = once_tasks.effect.delay("a", [moment])

    assert job.get(PATIENCE) == "a is done"
    assert journal.starts("a") == starts
    assert effects(database) == ["a"]
    said = f"job {job.id} has committed in an earlier run: its function was not called again"
    assert (said in running.log) is (moment == "after")


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("after_commit", ["crashes", "hangs"])
def test_whatever_happens_after_the_commit_does_not_fail_the_job(worker, database, journal, concurrency, after_commit):
    running = worker("--concurrency", concurrency, KILL_GRACE_SECONDS=0.5)
    if after_commit == "crashes":
        job = once_tasks.effect.using(max_crashes=0, max_attempts=1).delay("a", ["after"])
    else:
        job = once_tasks.hang_after_commit.using(time_limit=0.2, max_attempts=1).delay("a")

    assert job.get(PATIENCE) == "a is done"
    assert journal.starts("a") == 1
    assert effects(database) == ["a"]
    assert (f"job {job.id} ignores its time limit" in running.log) is (after_commit == "hangs")


def test_a_time_limit_leaves_no_effect(worker, database, journal):
    worker("--concurrency", 3)
    job = once_tasks.hang.using(time_limit=0.2, max_attempts=1).delay("a")

    with pytest.raises(JobFailed, match=r"0\.2 s"):
        job.get(PATIENCE)
    assert effects(database) == committed(database) == []


def test_two_runs_at_once_have_one_effect(worker, database, journal):
    slow = worker(LEASE_SECONDS=1.0)
    job = once_tasks.wait.delay("a", "gate")
    first = journal.wait("start", "a")
    slow.kill_group(signal.SIGSTOP)  # in the middle of its transaction, for longer than its lease
    worker(LEASE_SECONDS=1.0)
    wait_until(lambda: f":{first.pid}:" not in job.refresh().worker)
    journal.open("gate")
    slow.kill_group(signal.SIGCONT)

    assert job.get(PATIENCE) is None
    assert effects(database) == ["a"]
    assert committed(database) == [job.id]


@pytest.mark.long
@pytest.mark.databases
@pytest.mark.parametrize("name", ["sqlite", "postgresql", "mariadb"])
def test_many_jobs_with_many_kills_have_one_effect_each(name, request):
    if name != "sqlite":
        request.getfixturevalue({"postgresql": "postgres"}.get(name, name))  # or the test is skipped
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.exactly_once", "--jobs", "200", "--kills", "15", "--database", name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["effects"] == counts["jobs with an effect"] == counts["rows of jobs"] == 200
    assert counts["settled without their function"] >= counts["killed after a commit"] > 0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_job_that_it_enqueued_is_not_lost_with_an_outbox(worker, database, journal):
    worker(OUTBOX=True)
    job = once_tasks.spawn.delay("a")
    journal.wait("end", "child of a")

    assert job.get(PATIENCE) is None
    assert journal.names() == ["a", "child of a"]
    assert effects(database) == ["a"]
