"""Middleware in real workers: one slot, threads and the event loop."""

import pytest

from django_rtq import JobState
from tests.app import context_tasks, tasks
from tests.support.waiting import PATIENCE, wait_until

TENANTS = ["tests.app.middleware.TenantMiddleware"]


@pytest.mark.parametrize("slots", [1, 4])
def test_each_job_has_its_own_tenant(rtq_worker, slots):
    calls = [(task, name) for name in ("a", "b", None) for task in (context_tasks.tenant, context_tasks.atenant)]
    headers = [{"headers": {"tenant": name}} if name else {} for _, name in calls]
    jobs = [task.using(**given).delay(name) for (task, name), given in zip(calls, headers, strict=True)]

    rtq_worker("--concurrency", slots, MIDDLEWARE=TENANTS, TASK_MODULES=["tasks", "context_tasks"])

    assert [job.get(PATIENCE)[0] for job in jobs] == [name for _, name in calls]


def test_threads_share_the_middleware(rtq_worker, journal):
    jobs = context_tasks.tenant.delay_many([((number,), {}) for number in range(50)])
    rtq_worker("--concurrency", 8, MIDDLEWARE=["tests.app.middleware.once"], TASK_MODULES=["tasks", "context_tasks"])
    for job in jobs:
        job.get(PATIENCE)
    assert journal.names("factory") == ["once"] * 2  # the system check, and the worker process


@pytest.mark.parametrize("task", [tasks.sleep, tasks.asleep])
def test_a_time_limit_covers_function_and_middleware(rtq_worker, journal, task):
    job = task.using(time_limit=0.1, max_attempts=1).delay("long", 60)
    rtq_worker(MIDDLEWARE=TENANTS)
    wait_until(lambda: job.state is JobState.DEAD)
    assert job.refresh().newest_error[0] == "django_rtq.exceptions.TimeLimitExceeded"


def test_a_worker_does_not_start_with_middleware_that_cannot_be_used(rtq_worker):
    worker = rtq_worker(MIDDLEWARE=["tests.app.middleware.functions_only", "nosuchmodule.x"], is_ready=False)
    wait_until(lambda: not worker.is_running)
    assert "rtq.E007" in worker.log
    assert "nosuchmodule.x cannot be imported" in worker.log
