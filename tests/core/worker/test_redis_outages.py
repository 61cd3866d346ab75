"""Redis is unreachable or hangs for a while: nothing is lost, and nothing runs twice without need."""

import os
import signal
import socket
import time

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, assert_nothing_left, is_empty, records
from tests.core.worker.processes import is_alive
from tests.support.waiting import PATIENCE, wait_until


def test_nothing_is_lost_when_redis_is_killed_while_jobs_run_and_wait(start, client, fragile, journal):
    workers = [start("--concurrency", 2, LEASE_SECONDS=10), start(LEASE_SECONDS=10)]
    names = [f"job-{i}" for i in range(30)]
    handles = tasks.sleep.delay_many([((name, 0.05), {}) for name in names])
    later = tasks.note.using(run_after=0.2).delay("later")
    running = journal.begin(tasks.gate.using(at_front=True), "running", "gate")
    for _ in range(3):
        fragile.kill()
        ends = journal.ends()
        fragile.start()
        wait_until(lambda ends=ends: journal.ends() > ends or is_empty(client))
    journal.open("gate")
    wait_until(lambda: is_empty(client))

    assert {handle.state for handle in [*handles, later, running]} == {JobState.SUCCEEDED}
    assert journal.starts("running") == 1
    assert sorted(journal.names("end")) == sorted([*names, "later", "running"])  # each once: the workers lived
    assert all("cannot reach Redis" in worker.log and "reached Redis again" in worker.log for worker in workers)
    for worker in workers:
        worker.stop()
    assert_nothing_left(client)


@pytest.mark.parametrize("how", ["hangs", "is gone"])
def test_no_job_runs_twice_because_redis_was_away_for_more_than_two_leases(start, client, fragile, journal, how):
    workers = [start("--processes", 2), start("--processes", 2)]
    handles = [tasks.gate.delay(f"job-{i}", "gate") for i in range(4)]
    for i in range(4):
        journal.wait("start", f"job-{i}")
    fragile.pause() if how == "hangs" else fragile.kill()
    let_pass(2.5)
    fragile.resume() if how == "hangs" else fragile.start()
    let_pass(1.5)  # whoever wants to take them has taken them
    journal.open("gate")
    wait_until(lambda: is_empty(client))

    assert journal.starts() == 4
    assert {(handle.state, handle.refresh().attempt) for handle in handles} == {(JobState.SUCCEEDED, 1)}
    for worker in workers:
        worker.stop()
    assert_nothing_left(client)


def let_pass(seconds):
    """Time has to pass: that nothing happens in it is what is tested."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until, seconds + 1)


@pytest.mark.parametrize(("why", "concurrency"), [("it is stopped", 1), ("it is old", 2)])
def test_what_was_finished_is_told_before_a_process_leaves_however_long_redis_is_away(
    start, client, fragile, journal, why, concurrency
):
    worker = start("--concurrency", concurrency, *(["--max-jobs", 1] if why == "it is old" else []), LEASE_SECONDS=10)
    job = journal.begin(tasks.gate, "job", "gate")
    fragile.kill()
    if why == "it is stopped":
        worker.kill(signal.SIGTERM)
        wait_until(lambda: "stopping: running jobs have" in worker.log)
    child = worker.child
    journal.open("gate")
    wait_until(lambda: "cannot reach Redis, retrying before it exits" in worker.log)
    let_pass(2.0)  # more tries than it may give up after
    assert worker.children == [child]
    fragile.start()
    wait_until(lambda: is_empty(client))

    assert (job.state, job.refresh().attempt) == (JobState.SUCCEEDED, 1)
    assert journal.starts() == 1
    worker.stop() if worker.is_running else None
    assert_nothing_left(client)


def test_a_worker_that_starts_before_redis_waits_for_it(rtq_worker, client, fragile, journal):
    fragile.kill()
    worker = rtq_worker(url=fragile.url, is_ready=False)
    wait_until(lambda: "cannot reach Redis" in worker.log)
    fragile.start()
    job = tasks.note.delay("job")
    wait_until(lambda: job.state is JobState.SUCCEEDED)

    worker.stop()
    assert_nothing_left(client)


ONCE = pytest.mark.parametrize(("concurrency", "task"), [(1, tasks.gate), (3, tasks.agate)])


@pytest.fixture
def ended_once(start, client, fragile, journal):
    """A job that may run but once has ended while Redis was away: its worker and its handle."""

    def end(concurrency, task):
        worker = start("--concurrency", concurrency, LEASE_SECONDS=10)
        job = journal.begin(task.using(max_crashes=0, max_attempts=1, time_limit=30), "once", "gate")
        fragile.kill()
        journal.open("gate")
        journal.wait("end", "once")
        wait_until(lambda: "must not run twice: waiting until its outcome is in Redis" in worker.log)
        return worker, job

    return end


@ONCE
def test_what_may_run_once_and_ended_while_redis_was_away_has_succeeded_though_its_process_is_killed(
    ended_once, fragile, journal, concurrency, task
):
    worker, job = ended_once(concurrency, task)
    os.kill(worker.child, signal.SIGKILL)
    wait_until(lambda: "are reclaimed later" in worker.log)
    fragile.start()
    wait_until(lambda: job.state is JobState.SUCCEEDED)
    after = tasks.note.delay("after")

    assert after.get(PATIENCE) == "after"
    assert journal.starts("once") == 1
    worker.stop()


def test_a_second_signal_ends_the_wait_for_redis_after_a_job_that_may_run_once(ended_once, fragile, journal):
    worker, _ = ended_once(1, tasks.gate)
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "stopping: running jobs have" in worker.log)

    assert worker.stop() == 128 + signal.SIGTERM
    fragile.start()


def test_workers_drain_a_server_whose_memory_is_full(rtq_worker, redis, journal):
    handles = tasks.note.delay_many([((f"job-{i}",), {}) for i in range(50)])
    crashing = tasks.die_once.delay("crash", "kill")
    failing = tasks.attempts.delay("failing", 3)
    with redis.full_memory():
        worker = rtq_worker(is_ready=False, LEASE_SECONDS=1)  # its info cannot be stored
        wait_until(lambda: not records(redis))
    assert {handle.state for handle in [*handles, crashing, failing]} == {JobState.SUCCEEDED}
    assert "lost its lease" not in worker.log
    assert_nothing_left(redis, worker)


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize("signals", [1, 2])
def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_redis_that_hangs(start, fragile, journal, signals, is_busy):
    drain_seconds = 1.0 if signals == 1 else 60.0
    worker = start("--drain-seconds", drain_seconds, LEASE_SECONDS=15)
    if is_busy:
        journal.begin(tasks.gate, "running", "gate")
    fragile.pause()
    worker.kill(signal.SIGTERM)
    since = time.monotonic()
    if signals == 2:
        wait_until(lambda: "worker" in worker.log and "stopping" in worker.log)
        worker.kill(signal.SIGTERM)
        since, drain_seconds = time.monotonic(), 0.0
    worker.wait()

    assert time.monotonic() - since < drain_seconds + 1.2  # 0.5 on a machine that does nothing else
    fragile.resume()


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
