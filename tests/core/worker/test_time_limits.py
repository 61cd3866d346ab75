"""Time limits: an exception in the job first, then a kill if the job ignores it."""

import pytest

from django_rtq import JobState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled
from tests.support.waiting import wait_until


def settled(jobs):
    return all(job.state.is_final for job in jobs)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_job_that_runs_too_long_gets_an_exception_and_has_failed(rtq_worker, redis, journal, concurrency):
    worker = rtq_worker("--concurrency", concurrency, KILL_GRACE_SECONDS=30)
    child = worker.child
    limited = {"time_limit": 0.2, "max_attempts": 2}
    too_long = [
        tasks.loop.using(**limited).delay("loop"),
        tasks.aloop.using(**limited).delay("aloop"),
    ]
    in_time = [tasks.note.using(time_limit=5).delay(f"note-{i}") for i in range(20)]
    in_time += [tasks.asleep.using(time_limit=5).delay(f"async-{i}", 0) for i in range(20)]
    wait_until(lambda: settled(too_long) and settled(in_time))

    for job in too_long:
        details = job.refresh()
        assert (details.state, details.failures, details.crashes) == (JobState.DEAD, 2, 0)
        assert details.errors[-1]["error_class"] == "django_rtq.exceptions.TimeLimitExceeded"
        assert "0.2 s" in details.errors[-1]["error"]
    assert {job.state for job in in_time} == {JobState.SUCCEEDED}
    assert worker.child == child
    assert_all_settled(redis, worker)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_job_that_does_not_heed_its_limit_is_killed_and_has_failed(rtq_worker, redis, journal, readers, concurrency):
    worker = rtq_worker("--concurrency", concurrency, KILL_GRACE_SECONDS=0.2)
    stubborn = tasks.stubborn.using(time_limit=0.1, max_attempts=2, max_crashes=0).delay("stubborn")
    if concurrency == 1:
        journal.open("gate")
    beside = tasks.gate.delay("beside", "gate")
    wait_until(lambda: stubborn.state is JobState.DEAD)
    journal.open("gate")
    wait_until(lambda: beside.state is JobState.SUCCEEDED)

    details = stubborn.refresh()
    assert (details.failures, details.crashes) == (2, 0)
    assert details.errors[-1]["error_class"] == "django_rtq.exceptions.TimeLimitExceeded"
    assert journal.starts("stubborn") == 2
    figures = readers.tasks.all()["tests.app.tasks.stubborn"]
    assert (figures.failed, figures.retried, figures.dead) == (2, 1, 1)
    assert beside.refresh().attempt == 1  # whoever ran beside it is given back, and nothing is counted
    assert "ignores its time limit" in worker.log
    assert f"job {stubborn.id} failed in attempt 1, will be retried" in worker.log
    wait_until(
        lambda: (
            f"job {stubborn.id} failed permanently in attempt 2, buried as a dead letter: tests.app.tasks.stubborn"
            in worker.log
        )
    )
    assert_all_settled(redis, worker)
