"""A process that is blocked or frozen keeps no jobs from other workers."""

import os
import signal

from django_rtq import JobState
from tests.app import long_tasks, tasks
from tests.core.worker.conservation import assert_nothing_left, records
from tests.support.waiting import wait_until


def state_of(handle):
    return handle.refresh().state


def workers_of(redis, pid):
    """The names under which a process takes part."""
    names = redis.zrange("{rtq:default}:workers", 0, -1)
    return [name for name in names if f":{pid}:".encode() in name]


def test_jobs_behind_one_that_holds_the_interpreter_lock_are_run_by_others(rtq_worker, redis, journal):
    tasks.note.delay_many([((f"before-{i}",), {}) for i in range(300)])
    hog = long_tasks.hog_until_unlocked.delay("hog", "file")
    behind = tasks.note.delay_many([((f"behind-{i}",), {}) for i in range(200)])
    with journal.locked("file"):
        worker = rtq_worker("--processes", 2, LEASE_SECONDS=2)
        wait_until(lambda: records(redis) == {hog.id})

        assert state_of(hog) is JobState.RUNNING
        assert {job.state for job in behind} == {JobState.SUCCEEDED}
    wait_until(lambda: state_of(hog) is JobState.SUCCEEDED)
    assert hog.refresh().attempt == 1
    assert max(map(journal.starts, {*journal.names()})) == 1
    assert "which no longer held the jobs" not in worker.log
    after = tasks.note.delay("after")
    wait_until(lambda: state_of(after) is JobState.SUCCEEDED)
    assert_nothing_left(redis, worker)


def test_jobs_that_a_frozen_process_was_given_are_run_by_others(rtq_worker, redis, journal):
    worker = rtq_worker("--processes", 2, LEASE_SECONDS=1)
    wait_until(lambda: len(redis.waiting_workers()) == 2)
    frozen, _ = worker.children
    (name,) = workers_of(redis, frozen)
    os.kill(frozen, signal.SIGSTOP)
    jobs = [tasks.note.delay(f"job-{i}") for i in range(6)]
    wait_until(lambda: not records(redis))

    assert {(job.state, job.refresh().attempt) for job in jobs} == {(JobState.SUCCEEDED, 1)}
    assert max(map(journal.starts, {*journal.names()})) == 1
    wait_until(lambda: not workers_of(redis, frozen))
    wait_until(lambda: f"process {frozen} of worker {name.decode()} is frozen: no sign of life" in worker.log)
    os.kill(frozen, signal.SIGCONT)
    wait_until(lambda: workers_of(redis, frozen) not in ([], [name]))
    assert_nothing_left(redis, worker)
