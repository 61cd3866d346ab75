"""Project code that uses the database in a supervisor: signal receivers, and functions of schedules."""

import os

from django_rtq import signals
from tests.app import database_tasks, tasks
from tests.support.waiting import PATIENCE, wait_until

MODULES = ["tasks", "database_tasks"]
PERIODIC = {"task": "tests.app.database_tasks.periodic", "every": 0.2, "args": ["tick"]}


# They are for workers only: here they would hear of the jobs of all other tests.
for signal in (signals.job_reclaimed, signals.job_promoted):
    signal.disconnect(database_tasks.write_down)


def open_databases(worker):
    """What a supervisor has open of the database."""
    names = (f"/proc/{worker.pid}/fd/{fd}" for fd in os.listdir(f"/proc/{worker.pid}/fd"))  # noqa: PTH208
    return [name for name in names if os.path.exists(name) and "sqlite" in os.readlink(name)]  # noqa: PTH110, PTH115


def test_no_process_inherits_the_connection_of_a_receiver(rtq_worker, redis, journal):
    worker = rtq_worker(TASK_MODULES=MODULES)
    tasks.die_once.delay("crash", "kill")
    noted = journal.wait("noted", str(worker.pid))
    journal.wait("end", "crash")
    tasks.note.using(run_after=0.1).delay("later")
    journal.wait("noted", str(worker.pid), times=2)

    assert noted.pid == worker.pid
    for _ in range(2):
        assert database_tasks.is_connected.delay().get(PATIENCE) is False
        os.kill(worker.child, 9)
    wait_until(lambda: not open_databases(worker))
    worker.stop()


def test_a_schedule_goes_on_when_the_database_has_cut_its_connection(rtq_worker, redis, journal):
    worker = rtq_worker(TASK_MODULES=MODULES, SCHEDULES={"tick": PERIODIC})
    journal.wait("start", "tick", times=5)

    assert "its job could not be created" not in worker.log
    wait_until(lambda: not open_databases(worker))
    worker.stop()
