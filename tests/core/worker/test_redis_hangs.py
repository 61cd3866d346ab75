"""Redis hangs: the supervisor still does at once what it can do without Redis."""

import os
import signal
import socket

import pytest

from django_rtq import JobState
from django_rtq.core.worker.supervisor.fork_schedule import MAX_FAILED_STARTS
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, assert_nothing_left, records, signed_on
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


def test_a_second_signal_is_heeded_at_once(start, hang, journal):
    worker = start("--processes", 2, query=PATIENT, LEASE_SECONDS=30)
    tasks.gate.delay("job", "never")
    pid = journal.wait("start", "job").pid
    (idle,) = set(worker.children) - {pid}
    hang()
    os.kill(idle, signal.SIGKILL)
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "a second signal" in worker.log, SOON)
    worker.kill(signal.SIGTERM)

    assert worker.wait(SOON) == 128 + signal.SIGTERM


def test_the_drain_is_not_exceeded(start, hang, journal):
    worker = start("--drain-seconds", 1, query=PATIENT, LEASE_SECONDS=30)
    tasks.gate.delay("job", "never")
    journal.wait("start", "job")
    hang()
    worker.kill(signal.SIGTERM)

    assert worker.wait(1 + SOON) == 0


def test_jobs_of_the_dead_are_taken_back_when_it_answers(start, client, hang, journal):
    worker = start("--processes", 2, query=PATIENT, LEASE_SECONDS=30)
    job = tasks.gate.delay("job", "gate")
    pid = journal.wait("start", "job").pid
    hang()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "was killed by SIGKILL" in worker.log)
    hang.over()
    journal.wait("start", "job", times=2)
    journal.open("gate")
    wait_until(lambda: not records(client))

    assert job.refresh().attempt == 2
    worker.stop()
    assert_nothing_left(client)


def test_false_starts_while_it_is_away_end_no_worker(start, client, fragile):
    worker = start("--processes", 4, LEASE_SECONDS=30)
    fragile.kill()
    for _ in range(3):
        children = worker.children
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda children=children: len(set(worker.children) - set(children)) == 4)
    assert worker.log.count("was killed by SIGKILL") >= 12 > MAX_FAILED_STARTS
    assert "gives up" not in worker.log

    fragile.start()
    job = tasks.note.delay("after")
    wait_until(lambda: job.state is JobState.SUCCEEDED)
    wait_until(lambda: signed_on(client) == set(worker.children))  # and nobody of those that died
    worker.stop()
    assert_nothing_left(client)


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
