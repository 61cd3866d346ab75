"""Many jobs of five steps that are killed on the lines between them, and workers that freeze for longer than a lease:
no finished step runs again, and what a step writes is committed once.

RTQ_STEP_JOBS says how many; each is killed twice. Each of the ten lines kills a fifth of them.
"""

import os
import signal
from collections import Counter

import pytest

from tests.app import once_tasks
from tests.app import step_tasks as tasks
from tests.support.nightly import IS_NIGHTLY
from tests.support.waiting import PATIENCE, wait_until

JOBS = int(os.environ.get("RTQ_STEP_JOBS", "200" if IS_NIGHTLY else "15"))
LINES = [f"{where} {number}" for number in range(5) for where in ("before", "after")]
OPTIONS = {"LEASE_SECONDS": 1, "TASK_MODULES": ["tasks", "step_tasks"]}


@pytest.fixture
def worker(rtq_worker, redis, database):
    database.query(once_tasks.CREATE_TABLE)
    return lambda *arguments: rtq_worker(*arguments, environment=database.environment, **OPTIONS)


def rows(database):
    return Counter(name for (name,) in database.query("SELECT name FROM effects"))


def test_no_finished_step_runs_again_whichever_line_kills_the_process(worker, database, journal):
    worker("--processes", 4)
    names = [f"job{number}" for number in range(JOBS)]

    # Each of a client of its own: one whose jobs crash processes has to wait.
    jobs = [tasks.walk_far.using(client=name).delay(name, LINES[n % 5 :: 5]) for n, name in enumerate(names)]

    for job in jobs:
        job.get(PATIENCE + JOBS / 2)
    steps = {f"{name} {number}" for name in names for number in range(5)}
    assert Counter(journal.names()) == dict.fromkeys(steps, 1)
    assert rows(database) == dict.fromkeys((step for step in steps if step[-1] in "13"), 1)
    deaths = list(journal.path.parent.glob("died *"))
    print(f"{JOBS} jobs, {len(steps)} steps, {len(deaths)} kills")  # noqa: T201
    assert len(deaths) == 2 * JOBS


@pytest.mark.parametrize("kind", ["step", "atomic_step"])
def test_a_worker_that_was_frozen_for_longer_than_its_lease_writes_nothing(worker, database, journal, kind):
    frozen = worker()
    job = tasks.hold_on.delay("a", "gate", kind)
    journal.wait("start", "a held")
    frozen.kill_group(signal.SIGSTOP)
    other = worker()
    assert job.get(PATIENCE) == "a second"

    journal.open("gate")
    frozen.kill_group(signal.SIGCONT)

    wait_until(lambda: "lost its lease" in frozen.log)
    assert [frozen.stop(), other.stop()] == [0, 0]
    assert job.refresh().result == "a second"
    assert journal.names("end") == ["a second"]
    # The row of a plain step is written before anybody asks who holds the job.
    assert rows(database) - Counter(["a first"] if kind == "step" else []) == {"a second": 1}
