"""Redis hangs: the supervisor still does at once what it can do without Redis."""

import os
import signal
import socket

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled
from tests.core.worker.processes import is_alive
from tests.support.waiting import PATIENCE, wait_until

SOON = 30.0  # seconds; a supervisor that waits for a reply of Redis needs longer
PATIENT = "?socket_timeout=300"  # in a URL: how long a command waits for its reply


@pytest.fixture
def hang(fragile):
    """Let Redis hang: hang(). It goes on with the end of the test, or with hang.over()."""

    class Hang:
        over = staticmethod(fragile.resume)

        def __call__(self):
            fragile.pause()

    yield Hang()
    fragile.resume()


def test_a_time_limit_is_kept_and_the_dead_are_replaced(start, client, hang, journal):
    worker = start("--processes", 2, query=PATIENT, LEASE_SECONDS=30, KILL_GRACE_SECONDS=0.5)
    job = tasks.stubborn.using(time_limit=1, max_attempts=1).delay("stubborn")
    pid = journal.wait("start", "stubborn").pid
    (idle,) = set(worker.children) - {pid}
    hang()
    os.kill(idle, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), SOON)
    wait_until(lambda: len(worker.children) == 2, SOON)

    assert "ignores its time limit" in worker.log
    hang.over()
    wait_until(lambda: job.state is JobState.DEAD)
    assert (job.refresh().failures, job.refresh().crashes) == (1, 0)
    after = tasks.note.delay("after")
    assert after.get(PATIENCE) == "after"
    worker.stop()
    assert_all_settled(client)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_worker_that_waits_for_it_before_it_starts_ends_at_a_signal(rtq_worker, redis, signum):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        worker = rtq_worker(url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0{PATIENT}", is_ready=False)
        connection, _ = silent.accept()
        with connection:
            worker.kill(signum)
            assert worker.wait(SOON) == 0
    assert "Traceback" not in worker.log
