"""Jobs of workflows take turns, and are limited, as all others; their results are kept for the steps that take them."""

from contextlib import contextmanager

import pytest
from django.conf import settings
from django.test import override_settings

from django_rtq import WorkflowState, task, workflow
from django_rtq.core.broker.brokers import get_broker
from django_rtq.testing import drain
from tests.app import workflow_steps as tasks
from tests.support.jobs import QUEUE
from tests.support.waiting import server_ms

pytestmark = pytest.mark.usefixtures("redis", "broker", "journal")


@task
def noted(name):
    return name


@contextmanager
def with_rtq(**options):
    """With other options, and the broker of these settings."""
    with override_settings(RTQ={**settings.RTQ, **options}):
        yield
        get_broker().close()


@pytest.mark.parametrize("options", [{"RESULT_TTL": 0}, {"MAX_RESULTS": 1}, {}], ids=str)
def test_a_result_is_kept_whatever_settings_and_the_task_say(options):
    double = tasks.double if options else tasks.double.using(result_ttl=0)
    with with_rtq(**options):
        with workflow("sums") as flow:
            total = flow.add(tasks.add_up, flow.map(double, range(5)).results)
            flow.add(tasks.report, "total", total.result)

        drain()

        assert flow.handle.state is WorkflowState.SUCCEEDED
        assert list(flow.handle.results("add_up")) == [20]


@pytest.mark.parametrize(("is_taken", "state"), [(True, WorkflowState.BLOCKED), (False, WorkflowState.SUCCEEDED)])
def test_a_result_that_is_too_large_for_a_step_makes_a_dead_job_that_names_the_setting(is_taken, state):
    with with_rtq(MAX_STEP_RESULT_BYTES=100):
        with workflow("large") as flow:
            large = flow.add(noted, "x" * 200)
            if is_taken:
                flow.add(noted, large.result)

        (run,) = drain(raise_errors=False)

        assert flow.handle.state is state
        assert ("MAX_STEP_RESULT_BYTES" in str(run.error)) is is_taken


def test_a_step_whose_task_nobody_knows_waits_and_loses_nothing(redis, broker):
    """As a job of any other task: for a worker that knows it."""
    with workflow("deploy") as flow:
        step = flow.add(tasks.double, 1)
        flow.after(step).add(noted, "after")
    key = broker.keys.of(QUEUE)
    field = redis.hkeys(key.waiting_members + flow.id.encode())[0]
    call = redis.hget(key.waiting_members + flow.id.encode(), field)
    redis.hset(key.waiting_members + flow.id.encode(), field, call.replace(b".noted", b".gone"))

    drain(raise_errors=False)

    (due,) = [at for _, at in redis.zrange(key.scheduled, 0, -1, withscores=True)]
    assert due > server_ms(redis)
    assert flow.handle.state is WorkflowState.RUNNING
