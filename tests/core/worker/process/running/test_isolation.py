"""Jobs do not affect later jobs."""

import pytest

from django_rtq import JobState
from tests.app import context_tasks, tasks
from tests.core.worker.conservation import assert_all_settled, assert_nothing_left
from tests.support.waiting import wait_until


def done(jobs):
    return all(job.state is JobState.SUCCEEDED for job in jobs)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_language_time_zone_and_transactions_do_not_leak(rtq_worker, redis, journal, concurrency):
    leavers = [tasks.leave_traces, tasks.aleave_traces, tasks.leave_transaction_open, tasks.aleave_transaction_open]
    jobs, seen = [], []
    for leave in leavers * 3:
        jobs.append(leave.delay())
        seen.append(tasks.settings_of_thread.delay())
    worker = rtq_worker("--concurrency", concurrency)
    wait_until(lambda: done([*jobs, *seen]))

    assert [job.result for job in seen] == [["en", "UTC", False]] * len(seen)
    # Of a coroutine after its outcome.
    wait_until(lambda: worker.log.count("a job left a transaction open on database 'default': rolled back") == 6)
    assert_nothing_left(redis, worker)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_broken_database_connection_is_replaced_and_the_query_log_stays_short(
    rtq_worker, redis, journal, concurrency
):
    worker = rtq_worker("--concurrency", concurrency, environment={"RTQ_TEST_DEBUG": "1"})
    fine = [tasks.query.delay() for _ in range(20)] + [tasks.aquery.delay() for _ in range(20)]
    breaking = [tasks.query.using(max_attempts=1).delay(breaks=True) for _ in range(3)]
    wait_until(lambda: done(fine) and all(job.state is JobState.DEAD for job in breaking))
    after = [tasks.query.delay() for _ in range(10)] + [tasks.aquery.delay() for _ in range(10)]
    wait_until(lambda: done(after))

    assert {job.result[0] for job in [*fine, *after]} == {42}
    assert max(job.result[1] for job in [*fine, *after]) <= 6  # of the job itself; those of a start included
    assert_all_settled(redis, worker)


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_connection_that_cannot_be_closed_is_no_failure_of_the_job(rtq_worker, redis, journal, concurrency):
    job = context_tasks.query_and_break_close.delay("job")
    worker = rtq_worker("--concurrency", concurrency)
    wait_until(lambda: job.state.is_final)
    after = tasks.query.delay()
    wait_until(lambda: after.state.is_final)

    assert after.result[0] == 42
    assert (job.state, journal.starts("job")) == (JobState.SUCCEEDED, 1)
    assert "cannot close a connection to database 'default': dropped it" in worker.log
    assert_nothing_left(redis, worker)
