"""Redis is unreachable for a while: nothing is lost, and nothing runs twice without need."""

import os
import signal
import time
from contextlib import suppress

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conftest import LONG_WAITS
from tests.core.worker.conservation import assert_nothing_left, is_empty, records
from tests.support.waiting import PATIENCE, wait_until


def test_nothing_is_lost_when_redis_is_killed_while_jobs_run_and_wait(start, client, fragile, journal):
    workers = [start("--concurrency", 2, LEASE_SECONDS=10), start(LEASE_SECONDS=10)]
    names = [f"job-{i}" for i in range(30)]
    handles = tasks.sleep.delay_many([((name, 0.05), {}) for name in names])
    later = tasks.note.using(run_after=0.2).delay("later")
    running = tasks.gate.using(at_front=True).delay("running", "gate")
    journal.wait("start", "running")
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


def test_what_was_finished_while_redis_was_away_is_settled_when_it_is_back(start, client, fragile, journal):
    worker = start()
    job = tasks.gate.delay("job", "gate")
    journal.wait("start", "job")
    fragile.kill()
    journal.open("gate")
    journal.wait("end", "job")
    wait_until(lambda: "cannot reach Redis" in worker.log)
    fragile.start()
    wait_until(lambda: is_empty(client))

    assert job.state is JobState.SUCCEEDED
    assert journal.starts() == 1
    worker.stop()
    assert_nothing_left(client)


@pytest.mark.parametrize("why", ["it is stopped", "it is old"])
@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_was_finished_is_told_before_a_process_leaves_however_long_redis_is_away(
    start, client, fragile, journal, why, concurrency
):
    worker = start("--concurrency", concurrency, *(["--max-jobs", 1] if why == "it is old" else []), LEASE_SECONDS=10)
    job = tasks.gate.delay("job", "gate")
    journal.wait("start", "job")
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


def test_the_time_to_drain_ends_also_while_redis_is_away(start, fragile, journal):
    worker = start("--drain-seconds", 1)
    tasks.gate.delay("job", "gate")
    journal.wait("start", "job")
    fragile.kill()
    journal.open("gate")
    journal.wait("end", "job")

    assert worker.stop() == 0
    assert "was killed by SIGKILL" in worker.log
    fragile.start()


def test_a_worker_can_be_stopped_while_redis_is_gone(start, client, fragile, journal):
    worker = start(TASK_MODULES=LONG_WAITS["TASK_MODULES"])
    fragile.kill()
    wait_until(lambda: "cannot reach Redis" in worker.log)

    assert worker.stop() == 0
    fragile.start()


def test_a_worker_that_starts_before_redis_waits_for_it(rtq_worker, client, fragile, journal):
    fragile.kill()
    worker = rtq_worker(url=fragile.url, is_ready=False)
    wait_until(lambda: "cannot reach Redis" in worker.log)
    fragile.start()
    job = tasks.note.delay("job")
    wait_until(lambda: job.state is JobState.SUCCEEDED)

    worker.stop()
    assert_nothing_left(client)


def test_a_child_that_dies_while_redis_is_away_is_settled_when_it_is_back(start, client, fragile, journal):
    worker = start(LEASE_SECONDS=10)
    job = tasks.gate.delay("job", "gate")
    journal.wait("start", "job")
    fragile.kill()
    os.kill(worker.child, signal.SIGKILL)
    wait_until(lambda: "are reclaimed later" in worker.log)
    fragile.start()
    journal.wait("start", "job", times=2)
    journal.open("gate")
    wait_until(lambda: is_empty(client))

    assert job.refresh().attempt == 2
    worker.stop()
    assert_nothing_left(client)


ONCE = pytest.mark.parametrize(("concurrency", "task"), [(1, tasks.gate), (3, tasks.gate), (3, tasks.agate)])


@pytest.fixture
def ended_once(start, client, fragile, journal):
    """A job that may run but once has ended while Redis was away: its worker and its handle."""

    def end(concurrency, task):
        worker = start("--concurrency", concurrency, LEASE_SECONDS=10)
        job = task.using(max_crashes=0, max_attempts=1, time_limit=30).delay("once", "gate")
        journal.wait("start", "once")
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


@ONCE
def test_what_may_run_once_and_ended_while_redis_was_away_is_settled_when_it_is_back(
    ended_once, client, fragile, journal, concurrency, task
):
    worker, job = ended_once(concurrency, task)
    fragile.start()
    wait_until(lambda: is_empty(client))

    assert job.state is JobState.SUCCEEDED
    assert journal.starts("once") == 1
    worker.stop()
    assert_nothing_left(client)


def test_a_second_signal_ends_the_wait_for_redis_after_a_job_that_may_run_once(ended_once, fragile, journal):
    worker, _ = ended_once(1, tasks.gate)
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "stopping: running jobs have" in worker.log)

    assert worker.stop() == 128 + signal.SIGTERM
    fragile.start()


def test_cut_connections_and_forgotten_scripts_under_load_lose_and_repeat_nothing(rtq_worker, redis, journal):
    workers = [rtq_worker(LEASE_SECONDS=30), rtq_worker("--concurrency", 3, LEASE_SECONDS=30)]
    names = [f"job-{i}" for i in range(1500)]
    handles = tasks.note.delay_many([((name,), {}) for name in names])
    while journal.ends() < len(names):
        for connection in redis.clients_of_ours():
            redis.client_kill_filter(_id=connection["id"])
        redis.script_flush()
        ends = journal.ends()
        wait_until(lambda ends=ends: journal.ends() > ends or not records(redis))
    wait_until(lambda: not records(redis))

    assert sorted(journal.names("end")) == sorted(names)
    assert {handle.state for handle in handles} == {JobState.SUCCEEDED}
    for worker in workers:
        worker.stop()
    assert_nothing_left(redis)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_claim_that_got_lost_gives_back_what_the_worker_does_not_know_of(rtq_worker, redis, proxy, journal, moment):
    handles = tasks.note.delay_many([((f"job-{i}",), {}) for i in range(50)])
    worker = rtq_worker("--no-scheduler", url=proxy.url, LEASE_SECONDS=30)
    wait_until(lambda: not records(redis))
    for number in range(5):
        gate = f"gate-{number}"
        first = tasks.gate.delay(f"first-{number}", gate)
        journal.wait("start", f"first-{number}")
        waiting = tasks.note.delay(f"second-{number}")
        redis.drop_connection(moment, around=claim_sha())
        journal.open(gate)
        wait_until(lambda first=first, waiting=waiting: first.state.is_final and waiting.state.is_final)
        handles += [first, waiting]

    assert {(handle.state, handle.refresh().attempt) for handle in handles} == {(JobState.SUCCEEDED, 1)}
    assert len(journal.names()) == len(set(journal.names()))
    worker.stop()
    assert_nothing_left(redis)


def claim_sha():
    from django_rtq.core.broker.scripts import SCRIPTS

    return SCRIPTS["claim"].sha


def test_workers_drain_a_server_whose_memory_is_full(rtq_worker, redis, journal):
    handles = tasks.note.delay_many([((f"job-{i}",), {}) for i in range(50)])
    crashing = tasks.die_once.delay("crash", "kill")
    failing = tasks.attempts.delay("failing", 3)
    with redis.full_memory():
        worker = rtq_worker(is_ready=False, LEASE_SECONDS=1)  # its info cannot be stored
        wait_until(lambda: not records(redis))
    assert {handle.state for handle in [*handles, crashing, failing]} == {JobState.SUCCEEDED}
    assert "lost its lease" not in worker.log
    worker.stop()
    assert_nothing_left(redis)


def given_while_stopped(worker, redis):
    """A job that the server has given to a worker that cannot know: it was stopped while it waited."""
    for _ in range(20):
        wait_until(redis.waiting_workers)
        worker.kill_group(signal.SIGSTOP)
        job = tasks.gate.delay("job", "gate")
        with suppress(AssertionError):  # its wait was over, and the next had not begun
            wait_until(lambda job=job: job.state is JobState.RUNNING, 0.3)
            return job
        job.cancel()
        worker.kill_group(signal.SIGCONT)
    raise AssertionError("it was never given the job")


def test_an_idle_worker_that_is_stopped_for_longer_than_its_lease_leaves_its_job_to_others(rtq_worker, redis, journal):
    stopped = rtq_worker("--no-scheduler", LEASE_SECONDS=1)
    job = given_while_stopped(stopped, redis)
    other = rtq_worker("--no-scheduler", LEASE_SECONDS=30, is_ready=False)
    journal.wait("start", "job")
    stopped.kill_group(signal.SIGCONT)
    wait_until(lambda: "too late to be valid" in stopped.log)
    journal.open("gate")
    wait_until(lambda: not records(redis))

    assert job.state is JobState.SUCCEEDED
    assert journal.starts("job") == 1
    for worker in (stopped, other):
        worker.stop()
    assert_nothing_left(redis)


@pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])
@pytest.mark.parametrize("signals", [1, 2])
def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_redis_that_hangs(start, fragile, journal, signals, is_busy):
    drain_seconds = 1.0 if signals == 1 else 60.0
    worker = start("--drain-seconds", drain_seconds, LEASE_SECONDS=15)
    if is_busy:
        tasks.gate.delay("running", "gate")
        journal.wait("start", "running")
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
