"""--burst: work until the queues are empty, then exit."""

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, records
from tests.support.apps import workflow
from tests.support.waiting import server_ms, wait_until


@pytest.mark.parametrize("options", [(), ("--concurrency", 4), ("--processes", 2)])
def test_a_burst_runs_all_that_is_due_and_leaves(rtq_worker, redis, journal, options):
    handles = tasks.note.delay_many([((f"job-{i}",), {}) for i in range(300)])
    handles += [tasks.asleep.delay(f"async-{i}", 0) for i in range(5)]
    handles += [tasks.note.using(queue_name="low").delay("low")]
    handles += [tasks.attempts.delay("failing", 3)]  # retried at once: due, so it belongs to the burst
    handles += [tasks.die_once.delay("crash", "exit")]
    due = tasks.note.using(run_after=0.001).delay("due")
    later = tasks.note.using(run_after=3600).delay("later")
    wait_until(lambda: server_ms(redis) > int(due.id[:12], 16) + 10)
    worker = rtq_worker("--burst", "--no-scheduler", "--queues", "default,low", *options, is_ready=False)

    assert worker.wait() == 0
    assert {handle.state for handle in [*handles, due]} == {JobState.SUCCEEDED}
    assert later.state is JobState.SCHEDULED
    assert records(redis) == {later.id}
    assert redis.zcard("{rtq:default}:workers") == 0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_burst_ends_after_a_suspect_that_waited_to_run_alone(rtq_worker, redis, journal, concurrency):
    poison = [tasks.die.using(max_crashes=1).delay(f"poison-{i}", "exit") for i in range(3)]
    beside = [tasks.sleep.delay(f"beside-{i}", 0.02) for i in range(20)]
    worker = rtq_worker("--burst", "--concurrency", concurrency, is_ready=False)

    assert worker.wait() == 0
    assert {job.state for job in poison} == {JobState.DEAD}
    assert {job.state for job in beside} == {JobState.SUCCEEDED}
    assert_all_settled(redis)


def test_a_burst_does_not_end_at_cancelled_jobs(rtq_worker, redis, access, journal):
    cancelled = tasks.note.delay_many([((f"cancelled-{i}",), {}) for i in range(600)])
    handles = tasks.note.delay_many([((f"job-{i}",), {}) for i in range(5)])
    for handle in cancelled:
        access.cancel(handle.id, "default")
    worker = rtq_worker("--burst", is_ready=False)

    assert worker.wait() == 0
    assert {handle.state for handle in handles} == {JobState.SUCCEEDED}
    assert_all_settled(redis)


def test_a_burst_runs_the_steps_of_workflows(rtq_worker, redis, journal):
    with workflow("chain") as flow:
        step = flow.add(tasks.note, "step-0")
        for number in range(1, 5):
            step = flow.after(step).add(tasks.note, f"step-{number}")
    worker = rtq_worker("--burst", "--no-scheduler", "--processes", 2, is_ready=False)

    assert worker.wait() == 0
    assert flow.handle.state == "succeeded"
