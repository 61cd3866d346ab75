"""Remote control of a worker: quiet, work, stop."""

import os

import pytest

from django_rtq import JobState
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.shared_memory import SharedState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled
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
    running = tasks.gate.delay("running", "gate")
    journal.wait("start", "running")
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
    worker.stop()
    assert_all_settled(redis)


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
    job = tasks.loop.delay("loop")
    journal.wait("start", "loop")
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
    running = tasks.gate.delay("running", "gate")
    journal.wait("start", "running")

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
