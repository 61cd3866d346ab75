"""Jobs of several steps, run by workers that are killed: what has finished never runs again."""

from functools import partial

import pytest

from tests.app import step_tasks as tasks
from tests.support.waiting import PATIENCE

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


def test_many_jobs_that_are_killed_run_each_step_once(worker, journal):
    worker("--processes", 2)
    names = [f"job{number}" for number in range(24)]

    jobs = [tasks.walk.delay(name, LINES[number % 6 :: 3]) for number, name in enumerate(names)]

    for job in jobs:
        job.get(PATIENCE)
    assert {name: steps_of(journal, name) for name in names} == {name: [1, 1, 1] for name in names}


def test_a_job_that_fails_goes_on_behind_its_last_step(worker, journal):
    worker()

    job = tasks.fail_between.delay("a")

    assert job.get(PATIENCE) == {"name": "a second", "pair": [1, 2]}
    assert (journal.starts("a first"), journal.starts("a second")) == (1, 1)


def test_a_dead_letter_that_is_requeued_goes_on_behind_its_last_step(worker, journal, inspector):
    worker()
    job = tasks.fail_between.using(max_attempts=1).delay("a")
    with pytest.raises(Exception, match="not yet"):
        job.get(PATIENCE)

    inspector.requeue("default", [job.id])
    with pytest.raises(Exception, match="not yet"):
        job.get(PATIENCE)

    assert journal.starts("a first") == 1
