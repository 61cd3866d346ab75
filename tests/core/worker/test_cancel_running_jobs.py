"""Jobs that run and are asked to stop, or terminated, in real workers."""

import os
import signal

import pytest

from django_rtq import JobState
from django_rtq.exceptions import JobFailed
from tests.app import long_tasks, tasks
from tests.core.worker.conservation import assert_all_settled
from tests.support.waiting import PATIENCE, wait_until


def cancel_running(job, **options):
    """Ask it to stop, and wait until it is over. Where the lease is long, no heartbeat can have helped."""
    assert job.cancel(**options) == "asked"
    with pytest.raises(JobFailed, match="is cancelled"):
        job.get(timeout=PATIENCE)
    assert job.refresh().state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("concurrency", "task", "arguments"),
    [
        (1, "sleep", [60]),
        (1, "asleep", [60]),
        (3, "loop", []),  # a sleep in a thread is a long call in C: it would be over first
        (3, "asleep", [60]),
    ],
)
def test_a_job_is_stopped_and_the_worker_goes_on(rtq_worker, redis, journal, concurrency, task, arguments):
    worker = rtq_worker("--concurrency", concurrency, LEASE_SECONDS=1000)
    child = worker.child
    job = getattr(tasks, task).using(max_attempts=3).delay("long", *arguments)
    journal.wait("start", "long")

    cancel_running(job)

    assert job.refresh().attempt == 1
    after = tasks.note.delay("after")
    assert after.get(PATIENCE) == "after"
    assert worker.child == child
    assert journal.starts("long") == 1
    assert f"cancelled job {job.id} of queue default" in worker.log
    assert_all_settled(redis, worker)
    assert not redis.exists("{rtq:default}:cancel_requests")


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_job_that_heeds_nothing_is_terminated_and_its_neighbours_are_given_back(
    rtq_worker, redis, journal, concurrency
):
    worker = rtq_worker("--concurrency", concurrency, LEASE_SECONDS=1000)
    beside = tasks.gate.delay("beside", "gate") if concurrency > 1 else None
    job = journal.begin(long_tasks.hog.using(max_attempts=3), "hog", 60)

    job.cancel()  # it cannot hear
    cancel_running(job, terminate=True)

    journal.open("gate")
    if beside:
        beside.get(PATIENCE)
        details = beside.refresh()
        assert (details.attempt, details.crashes) == (1, 0)
    assert tasks.note.delay("after").get(PATIENCE) == "after"
    assert journal.starts("hog") == 1
    assert "is to be terminated" in worker.log
    assert "out of memory" not in worker.log
    assert_all_settled(redis, worker)


@pytest.mark.parametrize("whole", [False, True])
def test_asked_it_never_runs_again_though_its_worker_is_killed(rtq_worker, redis, journal, whole):
    worker = rtq_worker(LEASE_SECONDS=1)
    job = journal.begin(long_tasks.deaf, "deaf")
    assert job.cancel() == "asked"
    journal.wait("ignored", "deaf")

    if whole:
        worker.kill_group(signal.SIGKILL)
        rtq_worker(LEASE_SECONDS=1)
    else:
        os.kill(worker.child, signal.SIGKILL)
    wait_until(lambda: job.state.is_final)

    assert job.state is JobState.CANCELLED
    assert tasks.note.delay("after").get(PATIENCE) == "after"
    assert journal.starts("deaf") == 1


def test_a_task_may_say_by_itself_that_it_is_cancelled(rtq_worker, journal):
    rtq_worker()
    job = long_tasks.give_in.delay()

    with pytest.raises(JobFailed, match="is cancelled"):
        job.get(PATIENCE)
