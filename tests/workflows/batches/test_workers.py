"""Functions that get many jobs at once, run by real workers."""

from collections import Counter
from functools import partial

import pytest

from django_rtq import JobState, get_workflow, workflow
from tests.app import batch_tasks as tasks
from tests.core.worker.conservation import assert_all_settled, dead, records
from tests.support.waiting import PATIENCE, wait_until


@pytest.fixture
def worker(rtq_worker):
    return partial(rtq_worker, TASK_MODULES=["tasks", "batch_tasks"])


def batches(journal):
    return [entry.name.split() for entry in journal.entries("batch")]


def runs_of(journal):
    """How often each job ran."""
    return Counter(name for batch in batches(journal) for name in batch)


def enqueue(task, names, **options):
    return task.using(**options).delay_many([((name,), {}) for name in names])


@pytest.mark.parametrize("arguments", [(), ("--processes", 2, "--concurrency", 3)], ids=["one slot", "threads"])
def test_each_job_runs_once_in_batches_of_its_client(worker, journal, redis, arguments):
    jobs = [job for client in "xyz" for job in enqueue(tasks.index, [f"{client}{n}" for n in range(95)], client=client)]

    started = worker(*arguments)
    wait_until(lambda: not records(redis))

    assert runs_of(journal) == dict.fromkeys([f"{client}{n}" for client in "xyz" for n in range(95)], 1)
    assert all(len({name[0] for name in batch}) == 1 for batch in batches(journal))
    assert len(batches(journal)) < 285 / 3
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert_all_settled(redis, started)


def test_a_crash_counts_for_all_that_ran_and_then_the_culprit_runs_alone(worker, journal, redis):
    jobs = enqueue(tasks.crash, ["a", "b", "bad", "c", "d"])

    worker()
    wait_until(lambda: not records(redis) - dead(redis))

    assert [job.state.value for job in jobs] == ["succeeded", "succeeded", "dead", "succeeded", "succeeded"]
    assert batches(journal)[0] == ["a", "b", "bad", "c", "d"]
    assert runs_of(journal) == {"a": 2, "b": 2, "bad": 4, "c": 2, "d": 2}
    assert "The worker died while it ran this job: crash 4" in str(jobs[2].refresh().errors[-1])


def test_a_call_that_ignores_its_time_limit_is_a_failure_of_all_its_jobs(worker, journal, redis):
    jobs = [tasks.stubborn.delay(name) for name in "abc"]

    worker(KILL_GRACE_SECONDS=0.1)
    wait_until(lambda: len(dead(redis)) == 3)

    errors = [job.refresh().errors[-1]["error_class"] for job in jobs]
    assert errors == ["django_rtq.exceptions.TimeLimitExceeded"] * 3
    assert {job.refresh().attempt for job in jobs} == {1}
    assert batches(journal) == [["a", "b", "c"]]


def test_jobs_of_a_workflow_run_together_with_results_of_others(worker, journal, redis):
    with workflow("numbers") as flow:
        flow.add(tasks.add_up, flow.map(tasks.double, range(12)).results)
    worker()

    get_workflow(flow.id).get(PATIENCE)

    (call,) = [entry.name for entry in journal.entries("added")]
    assert call == str(sum(2 * n for n in range(12)))
