"""Middleware in real workers: one slot, threads and the event loop."""

import pytest

from tests.app import context_tasks
from tests.support.waiting import PATIENCE

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
