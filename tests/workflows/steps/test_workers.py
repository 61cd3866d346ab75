"""Jobs of several steps, run by workers that are killed: what has finished never runs again."""

import os
import signal
from functools import partial

import pytest

from django_rtq import JobState, WrongState
from tests.app import once_tasks
from tests.app import step_tasks as tasks
from tests.support.waiting import PATIENCE, wait_until

FAST = {"LEASE_SECONDS": 1, "TASK_MODULES": ["tasks", "step_tasks"]}
LINES = [f"{where} {number}" for number in range(3) for where in ("before", "after")]


@pytest.fixture
def worker(rtq_worker, redis):
    return partial(rtq_worker, **FAST)


def steps_of(journal, name):
    return [journal.starts(f"{name} {number}") for number in range(3)]


@pytest.mark.parametrize("walk", [tasks.walk, tasks.awalk])
def test_a_job_that_is_killed_on_each_line_between_its_steps_runs_each_step_once(worker, journal, walk):
    worker()

    job = walk.delay("a", LINES)

    assert job.get(PATIENCE) == [{"name": f"a {number}", "pair": [1, 2]} for number in range(3)]
    assert journal.starts("a run") == 1 + len(LINES)
    assert steps_of(journal, "a") == [1, 1, 1]


@pytest.mark.parametrize("order", [tasks.order, tasks.aorder])
def test_a_job_waits_for_an_event_without_its_worker(worker, journal, order):
    first = worker()
    job = order.delay("a")
    wait_until(lambda: job.state is JobState.SCHEDULED)
    first.stop()

    job.send("approved", {"by": "eve"})
    assert job.state is JobState.QUEUED
    worker()

    assert job.get(PATIENCE) == "shipped for eve"
    assert (journal.starts("a run"), journal.starts("a charge"), journal.starts("a ship")) == (2, 1, 1)
    with pytest.raises(WrongState, match="is over"):
        job.send("approved", {"by": "eve"})


def test_a_worker_that_is_killed_while_it_suspends_loses_nothing(worker, journal):
    """Kills at any moment: only a step that was running may run again."""
    running = worker("--processes", 2)
    naps = tasks.naps.using(max_crashes=100)
    jobs = [naps.delay(f"job{number}", 0.02, 3) for number in range(20)]
    for _ in range(5):
        wait_until(lambda: running.children)
        for child in running.children:
            os.kill(child, signal.SIGKILL)

    assert [job.get(PATIENCE) > 0 for job in jobs] == [True] * 20
    assert all(count > 0 for number in range(20) for count in steps_of(journal, f"job{number}"))


def test_a_loop_that_is_killed_misses_no_item(worker, journal):
    worker()

    job = tasks.ship_all.delay("a", 60, 40)

    assert job.get(PATIENCE) == "done"
    assert all(journal.starts(f"a {number}") >= 1 for number in range(60))
    assert [journal.starts(f"a {number}") for number in range(40, 60)] == [1] * 20


@pytest.mark.parametrize("book", [tasks.book, tasks.abook])
def test_an_atomic_step_is_committed_once(rtq_worker, database, journal, book):
    """Whether the process is killed before the commit, or after it and before Redis knows."""
    database.query(once_tasks.CREATE_TABLE)
    rtq_worker(environment=database.environment, **FAST)

    job = book.delay("a", ["before 0", "after 0", "before 1", "after 1"])

    assert job.get(PATIENCE) == [{"row": "a 0"}, {"row": "a 1"}]
    assert sorted(database.query("SELECT name FROM effects")) == [("a 0",), ("a 1",)]
    assert len(database.query("SELECT job_id FROM django_rtq_committedjob")) == 2
