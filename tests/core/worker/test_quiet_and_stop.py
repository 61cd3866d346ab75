"""Remote control of a worker: quiet, work, stop; stop signals, and what happens to running jobs."""

import os
import signal
import time

import pytest

from django_rtq import JobState
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.shared_memory import SharedState
from tests.app import tasks
from tests.core.worker.conftest import LONG_WAITS
from tests.core.worker.conservation import assert_all_settled, assert_conserved, assert_nothing_left, records
from tests.core.worker.processes import is_alive
from tests.support.commands import run
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import place_of
from tests.support.waiting import PATIENCE, wait_until


def is_quiet(readers):
    return [worker.is_quiet for worker in readers.workers()]


def is_resting(readers):
    return [worker.is_resting for worker in readers.workers()]


def found_workers(readers, count=1):
    """The processes of the worker, as soon as all of them are known."""
    wait_until(lambda: [bool(worker.supervisor_name) for worker in readers.workers()] == [True] * count)
    return readers.workers()


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_quiet_worker_finishes_what_runs_claims_nothing_and_stays(
    rtq_worker, redis, readers, rtq, journal, concurrency
):
    worker = rtq_worker("--concurrency", concurrency, "--processes", 2)
    one, other = found_workers(readers, 2)
    running = journal.begin(tasks.gate, "running", "gate")
    assert one.supervisor_name == other.supervisor_name

    rtq.workers[one.name].quiet()
    wait_until(lambda: "is quiet" in worker.log)
    wait_until(lambda: is_quiet(readers) == [True, True])
    idle = 1 if concurrency == 1 else 2  # with one slot, the other one looks for the command when its job is over
    wait_until(lambda: sum(is_resting(readers)) == idle)
    waiting = tasks.note.delay("waiting")
    journal.open("gate")
    running.get(PATIENCE)

    assert waiting.state is JobState.QUEUED
    assert run("rtq").out.count("(quiet)") == 2
    rtq.workers[other.name].wake()
    assert waiting.get(PATIENCE) == "waiting"
    assert len(worker.children) == 2
    wait_until(lambda: is_quiet(readers) == [False, False])
    assert_all_settled(redis, worker)


def test_a_process_with_a_new_name_is_known_at_once(rtq_worker, redis, broker, readers):
    """So is one that took it because it was told to be quiet: `rtq_workers wake` may be next."""
    worker = rtq_worker(LEASE_SECONDS=60)  # a long time until the next heartbeat
    (found,) = found_workers(readers)
    redis.delete(broker.keys.of(QUEUE).workers)
    tasks.note.delay("x").get(PATIENCE)
    (renamed,) = readers.workers()
    assert renamed.name != found.name

    assert (renamed.host, renamed.pid, renamed.supervisor_name) == (found.host, found.pid, found.supervisor_name)
    assert run("rtq_workers", "quiet", "--all").code == 0
    wait_until(lambda: "is quiet" in worker.log)


def test_who_takes_the_place_of_a_dead_process_is_quiet_too(rtq_worker, redis, readers, rtq, journal):
    worker = rtq_worker()
    (found,) = found_workers(readers)
    job = journal.begin(tasks.loop, "loop")
    rtq.workers[found.name].quiet()
    wait_until(lambda: "is quiet" in worker.log)
    child = worker.child

    job.cancel(terminate=True)
    wait_until(lambda: worker.children not in ([], [child]))
    waiting = tasks.note.delay("waiting")
    wait_until(lambda: is_quiet(readers) == [True])

    assert waiting.state is JobState.QUEUED


def test_a_worker_that_is_told_to_stop_finishes_what_runs_and_leaves(rtq_worker, redis, readers, rtq, journal):
    worker = rtq_worker()
    (found,) = found_workers(readers)
    running = journal.begin(tasks.gate, "running", "gate")

    rtq.workers[found.name].stop()
    wait_until(lambda: "stopping: running jobs have" in worker.log)
    journal.open("gate")

    assert worker.wait() == 0
    assert running.state is JobState.SUCCEEDED
    assert_all_settled(redis)


def test_what_was_claimed_in_the_moment_of_the_order_is_given_back(redis, broker, monkeypatch):
    child = WorkerProcess(broker, SharedState(1), WorkerOptions(queues=[QUEUE]), parent=os.getppid())
    child._session.sign_on()
    child._wait_for_work()  # it connects, which is a reason to reconcile
    child._session.reconcile()
    job = queued_job(broker)
    hold = child._session.hold

    def hold_and_hear(*args, **kwargs):
        hold(*args, **kwargs)
        child._shared.is_quiet = True
        child.on_control_signal()

    monkeypatch.setattr(child._session, "hold", hold_and_hear)
    child._wait_for_work()
    assert place_of(redis, job).startswith("running:")
    child._report_all()

    assert place_of(redis, job) == "lane:0:"
    child._shut_down()


LANE = "{rtq:default}:lane:0:"


def lane(redis):
    return [job_id.decode() for job_id in redis.lrange(LANE, 0, -1)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_first_signal_lets_running_jobs_finish_and_claims_nothing_more(rtq_worker, redis, journal, concurrency):
    worker = rtq_worker("--concurrency", concurrency)
    job = journal.begin(tasks.gate, "running", "gate")
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "running jobs have 25 s" in worker.log and not redis.waiting_workers())
    waiting = tasks.note.delay_many([((f"later-{i}",), {}) for i in range(3)])
    assert not worker_ended_within(worker, 0.3)
    journal.open("gate")

    assert worker.wait() == 0
    assert job.state is JobState.SUCCEEDED
    assert journal.names() == ["running"]
    assert lane(redis) == [handle.id for handle in waiting]
    assert_conserved(redis)


def worker_ended_within(worker, seconds):
    until = time.monotonic() + seconds
    wait_until(lambda: not worker.is_running or time.monotonic() > until)
    return not worker.is_running


@pytest.mark.parametrize("concurrency", [1, 3])
def test_when_the_time_is_over_a_job_is_given_back_in_front_and_nothing_is_counted(
    rtq_worker, redis, journal, concurrency
):
    worker = rtq_worker("--drain-seconds", "0.3", "--concurrency", concurrency)
    job = journal.begin(tasks.gate, "running", "never")
    worker.kill(signal.SIGTERM)
    wait_until(lambda: "running jobs have 0.3 s" in worker.log and not redis.waiting_workers())
    waiting = tasks.note.delay("later")

    assert worker.wait() == 0
    assert lane(redis) == [job.id, waiting.id]
    details = job.refresh()
    assert (details.failures, details.crashes, details.errors) == (0, 0, [])
    assert_conserved(redis)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_gives_jobs_back_at_once(rtq_worker, redis, journal, signum, code):
    worker = rtq_worker("--processes", 2)
    jobs = [tasks.gate.delay(f"job-{i}", "never") for i in range(2)]
    for i in range(2):
        journal.wait("start", f"job-{i}")
    children = worker.children
    worker.kill(signum)
    wait_until(lambda: "a second signal" in worker.log)
    worker.kill(signum)

    assert worker.wait() == code
    assert sorted(lane(redis)) == sorted(job.id for job in jobs)
    assert {job.refresh().crashes for job in jobs} == {0}
    assert not any(is_alive(pid) for pid in children)
    assert_conserved(redis)


def test_an_idle_worker_does_not_end_its_wait_first(rtq_worker, redis):
    worker = rtq_worker("--processes", 2, "--queues", "default,low", **LONG_WAITS)

    assert worker.stop(signal.SIGINT) == 0
    assert "SIGKILL" not in worker.log
    assert redis.zcard("{rtq:default}:workers") == 0
    assert redis.zcard("{rtq:low}:workers") == 0


def test_a_signal_to_the_whole_process_group_is_one_signal(rtq_worker, redis, journal):
    worker = rtq_worker("--processes", 2)
    job = journal.begin(tasks.gate, "running", "gate")  # and the other process is idle
    worker.kill_group(signal.SIGINT)
    wait_until(lambda: "a second signal" in worker.log)
    journal.open("gate")

    assert worker.wait() == 0
    assert job.state is JobState.SUCCEEDED
    assert "Traceback" not in worker.log
    assert "exited with code" not in worker.log
    assert_nothing_left(redis)


def test_a_job_that_may_run_only_once_is_not_given_back_half_done(rtq_worker, redis, journal):
    worker = rtq_worker("--drain-seconds", "0")
    job = journal.begin(tasks.gate.using(max_attempts=1, max_crashes=0), "once", "never")
    worker.stop()

    assert job.state is JobState.DEAD
    assert job.refresh().errors[-1]["error_class"] == "django_rtq.exceptions.WorkerLost"
    assert_all_settled(redis)


def test_signals_in_a_worker_that_is_busy_starting_and_recycling_stop_it_all_the_same(rtq_worker, redis, journal):
    workers = [rtq_worker("--max-jobs", 1, "--processes", 2, LEASE_SECONDS=30) for _ in range(3)]
    tasks.note.delay_many([((f"job-{i}",), {}) for i in range(2000)])
    for number, worker in enumerate(workers):
        journal.wait("end", f"job-{10 + 20 * number}")
        worker.kill(signal.SIGTERM)

    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert not any("SIGKILL" in worker.log for worker in workers)  # no child has missed the signal
    assert_conserved(redis)
    assert len(records(redis)) == 2000 - journal.ends()
