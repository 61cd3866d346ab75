"""Jobs that take their process down, and processes that are killed (G2, G3, G5)."""

import os
import signal
from collections import Counter

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, assert_nothing_left, dead, records
from tests.core.worker.processes import is_alive
from tests.support.waiting import wait_until

HOWS = ["exit", "abort", "segfault", "memory", "kill"]


def state_of(handle):
    return handle.refresh().state


def test_a_job_whose_child_is_killed_runs_again_long_before_its_lease_is_over(rtq_worker, redis, journal):
    worker = rtq_worker(LEASE_SECONDS=1000)
    job = journal.begin(tasks.gate, "victim", "gate")

    os.kill(worker.child, signal.SIGKILL)
    again = journal.wait("start", "victim", times=2)
    journal.open("gate")
    wait_until(lambda: state_of(job) is JobState.SUCCEEDED)

    assert again.pid == worker.child
    assert job.refresh().attempt == 2
    assert "SIGKILL" in worker.log
    assert job.id in worker.log
    assert_nothing_left(redis, worker)


def test_what_was_finished_does_not_run_again_when_others_take_the_process_down(rtq_worker, redis, journal):
    names, handles = [], []
    for killer in range(10):
        tasks.die.using(max_crashes=0).delay(f"killer-{killer}", "kill")
        batch = [f"{killer}-{i}" for i in range(200)]
        handles += tasks.note.delay_many([((name,), {}) for name in batch])
        names += batch
    worker = rtq_worker("--processes", 2)
    wait_until(lambda: not records(redis) - dead(redis))

    assert worker.log.count("was killed by SIGKILL (out of memory?); jobs run before") == 10
    assert sorted(name for name in journal.names() if not name.startswith("killer")) == sorted(names)  # each once
    assert [handle.result for handle in handles] == names
    assert len(dead(redis)) == 10
    assert_all_settled(redis, worker)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_way_to_die_is_a_crash_and_the_innocent_all_succeed(rtq_worker, redis, journal, concurrency):
    poison = {how: tasks.die.using(max_crashes=1).delay(how, how) for how in HOWS}
    poison["async"] = tasks.adie.using(max_crashes=1).delay("async", "exit")
    innocent = tasks.note.delay_many([((f"good-{i}",), {}) for i in range(200)])

    worker = rtq_worker("--concurrency", concurrency)
    wait_until(lambda: records(redis) == {job.id for job in poison.values()})
    wait_until(lambda: {state_of(job) for job in poison.values()} == {JobState.DEAD})

    for how, job in poison.items():
        details = job.refresh()
        assert (details.crashes, details.failures) == (2, 0), how
        # max_crashes, and the one too many. On threads nobody knows who of those that ran was to blame.
        assert journal.starts(how) == 2 or (concurrency > 1 and journal.starts(how) == 1), how
        assert details.errors[-1]["error_class"] == "django_rtq.exceptions.WorkerLost"
    assert {job.state for job in innocent} == {JobState.SUCCEEDED}
    attempts = {job.refresh().attempt for job in innocent}
    assert attempts == {1} or (concurrency > 1 and attempts <= {1, 2})  # once suspected, then cleared
    assert redis.hlen("{rtq:default}:crashes") == len(poison)
    assert worker.is_running
    assert_all_settled(redis, worker)


@pytest.mark.parametrize(("how", "slots"), [("kill", 4), ("late", 1)])
def test_others_do_not_wait_for_a_client_whose_jobs_crash(rtq_worker, redis, journal, slots, how):
    """All their jobs are over while many of its jobs wait. Afterwards these have their turns, without a pause."""
    bad = {"client": "bad", "max_crashes": 0, "max_attempts": 1}
    if how == "kill":
        crashing = tasks.die.using(**bad).delay_many([((f"bad-{i}", "kill"), {}) for i in range(60 * slots)])
    else:
        task = tasks.stubborn.using(**bad, time_limit=0.05)
        crashing = task.delay_many([((f"bad-{i}",), {}) for i in range(12 * slots)])
    tasks.sleep.using(client="good").delay_many([((f"good-{i}", 0.002), {}) for i in range(300)])

    worker = rtq_worker("--processes", 2, "--concurrency", slots, KILL_GRACE_SECONDS=0.1)
    wait_until(lambda: journal.ends() >= 300)
    waiting = redis.llen("{rtq:default}:lane:0:bad")
    wait_until(lambda: not records(redis) - dead(redis))

    assert waiting >= len(crashing) / 4
    assert dead(redis) == {job.id for job in crashing}
    assert "replacements are delayed" not in worker.log
    assert_all_settled(redis, worker)


def test_metrics_of_tasks_add_up_to_those_of_the_queue_beside_kills(rtq_worker, redis, journal):
    for number in range(10):
        tasks.note.delay_many([((f"{number}-{i}",), {}) for i in range(150)])
        tasks.attempts.using(max_attempts=2).delay(f"once-{number}", 2)
        tasks.bury.delay(f"buried-{number}")
        tasks.die.using(max_crashes=0).delay(f"killer-{number}", "kill")
    worker = rtq_worker("--processes", 2)
    wait_until(lambda: not records(redis) - dead(redis))
    worker.stop()

    counts = counted(redis, "tasks")
    of_tasks = {
        word: sum(number for name, number in counts.items() if name.startswith(f"{word} "))
        for word in ("done", "failed")
    }
    of_queue = counted(redis, "stats")
    assert of_tasks == {"done": of_queue["succeeded"], "failed": of_queue["failed"]} == {"done": 1510, "failed": 30}
    assert counts["done tests.app.tasks.note"] == 1500
    assert counts["retried tests.app.tasks.attempts"] == 10
    assert_all_settled(redis)


def counted(redis, kind):
    """Counters of the queue or its tasks, of all hours or minutes."""
    total = Counter()
    for key in redis.keys(f"{{rtq:default}}:{kind}:*"):
        total.update({name.decode(): int(value) for name, value in redis.hgetall(key).items()})
    return total


def test_a_job_that_may_not_run_twice_does_not_when_another_of_its_batch_crashes(rtq_worker, redis, journal):
    most_once = tasks.note.using(max_attempts=1, max_crashes=0)
    names = [f"once-{i}" for i in range(400)]
    handles = most_once.delay_many([((name,), {}) for name in names[:350]])
    tasks.die_once.delay("guilty", "exit")
    handles += most_once.delay_many([((name,), {}) for name in names[350:]])
    worker = rtq_worker()
    wait_until(lambda: not records(redis))
    worker.stop()

    assert sorted(name for name in journal.names() if name.startswith("once")) == sorted(names)
    assert {handle.state for handle in handles} == {JobState.SUCCEEDED}
    assert_nothing_left(redis)


def test_children_die_with_their_supervisor_and_another_takes_over_after_the_lease(rtq_worker, redis, journal):
    first = rtq_worker("--processes", 2, LEASE_SECONDS=1)
    jobs = [tasks.gate.delay(f"job-{i}", "gate") for i in range(2)]
    for i in range(2):
        journal.wait("start", f"job-{i}")
    children = first.children
    second = rtq_worker("--processes", 2, LEASE_SECONDS=1)

    first.kill(signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in children))
    again = [journal.wait("start", f"job-{i}", times=2) for i in range(2)]
    journal.open("gate")
    wait_until(lambda: not records(redis))

    assert {entry.pid for entry in again} <= set(second.children)
    assert {(job.state, job.refresh().attempt) for job in jobs} == {(JobState.SUCCEEDED, 2)}
    assert_nothing_left(redis, second)


def test_a_worker_that_was_stopped_past_its_lease_changes_nothing_when_it_goes_on(rtq_worker, redis, journal):
    sleeper = rtq_worker(LEASE_SECONDS=1)
    job = journal.begin(tasks.gate, "job", "gate")
    name = redis.zrange("{rtq:default}:workers", 0, -1)
    other = rtq_worker(LEASE_SECONDS=15)  # it is stopped for a while, too

    sleeper.kill_group(signal.SIGSTOP)
    again = journal.wait("start", "job", times=2)
    assert again.pid == other.child
    other.kill_group(signal.SIGSTOP)
    journal.open("gate")
    sleeper.kill_group(signal.SIGCONT)
    journal.wait("end", "job")
    wait_until(lambda: "which no longer held the jobs" in sleeper.log)
    assert state_of(job) is JobState.RUNNING  # the late one has changed nothing
    other.kill_group(signal.SIGCONT)
    wait_until(lambda: state_of(job) is JobState.SUCCEEDED)

    assert job.refresh().attempt == 2
    assert journal.ends("job") == 2
    wait_until(lambda: "continues under a new name" in sleeper.log)
    assert not set(name) & set(redis.zrange("{rtq:default}:workers", 0, -1))
    after = tasks.note.delay_many([((f"after-{i}",), {}) for i in range(20)])
    wait_until(lambda: not records(redis))
    assert {handle.state for handle in after} == {JobState.SUCCEEDED}
    for worker in (sleeper, other):
        worker.stop()
    assert_nothing_left(redis)
