"""Middleware around delay() and its kin."""

import asyncio
from dataclasses import replace

import pytest

from django_rtq import every, task
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.tasks import registry
from django_rtq.exceptions import ConfigurationError, InvalidTask, InvalidWorkflow
from tests.app.context_tasks import TENANT
from tests.app.middleware import LOG
from tests.support.apps import captured, workflow
from tests.support.jobs import take, take_all


@task
def plain(a=0):
    return a


@task(unique=True)
def only(a=0):
    return a


@pytest.fixture
def tenant(middleware):
    """All calls of a test are made for a tenant."""
    middleware("TenantMiddleware")
    token = TENANT.set("acme")
    yield
    TENANT.reset(token)


@pytest.mark.usefixtures("tenant")
def test_delay_adds_the_header(broker):
    plain.delay(5)
    assert take(broker).headers == {"tenant": "acme"}


@pytest.mark.usefixtures("tenant")
def test_headers_of_the_call_are_there_and_win(broker):
    plain.using(headers={"tenant": "other", "a": 1}).delay(5)
    plain.using(headers={"a": 1}).delay(5)
    assert [job.headers for job in take_all(broker)] == [{"tenant": "other", "a": 1}, {"a": 1, "tenant": "acme"}]


@pytest.mark.usefixtures("tenant")
def test_delay_many_goes_through_once(broker):
    handles = plain.delay_many([((n,), {}) for n in range(3)])
    assert [job.headers for job in take_all(broker)] == [{"tenant": "acme"}] * 3
    assert len(handles) == 3
    assert plain.delay_many([]) == []


@pytest.mark.usefixtures("tenant")
def test_adelay_sees_the_variables_of_its_coroutine(broker):
    async def call(name):
        TENANT.set(name)
        await plain.adelay()

    async def calls():
        await asyncio.gather(call("a"), call("b"))

    asyncio.run(calls())
    assert sorted(job.headers["tenant"] for job in take_all(broker)) == ["a", "b"]


@pytest.mark.usefixtures("tenant")
def test_unique_jobs_are_duplicates_as_without_it(broker):
    first, second = only.delay(1), only.delay(1)
    assert (second.id, second.duplicate) == (first.id, True)
    assert take(broker).headers == {"tenant": "acme"}


@pytest.mark.usefixtures("tenant")
def test_periodic_jobs_go_through_it(broker, monkeypatch):
    monkeypatch.setattr(registry, "_tasks", dict(registry._tasks))  # no other test is to have the schedule
    (schedule,) = task(schedule=every(seconds=60, args=[1]))(plain.func).schedule
    broker.schedules.begin("default", schedule.name, schedule.definition, 5)
    for slot_ms, each in ((60_000, plain), (120_000, only)):
        assert ScheduledTask(task=each, schedule=schedule).fire(broker, slot_ms) == "fired"
    assert [job.headers for job in take_all(broker)] == [{"tenant": "acme"}] * 2


@pytest.mark.usefixtures("tenant")
def test_captured_jobs_have_gone_through_it():
    with captured() as jobs:
        plain.delay()
    jobs.assert_enqueued(plain, headers={"tenant": "acme"})


@pytest.mark.usefixtures("tenant")
def test_jobs_of_the_package_do_not(broker):
    replace(plain, internal=True).delay()
    assert take(broker).headers == {}


def test_the_options_of_the_jobs_can_be_changed(broker, middleware):
    middleware("BulkQueue")
    handle = plain.delay(3)
    assert handle.queue_name == "bulk"
    assert handle.refresh().args == [3]
    assert LOG == ["plain [((3,), {})]"]


def test_forgetting_to_return_the_handles_is_an_error_that_says_so(broker, middleware):
    middleware("Forgetful")
    with pytest.raises(TypeError, match=r"returned None, but has to return what enqueue\(call\) returned"):
        plain.delay()


def test_middleware_that_cannot_be_used_is_an_error_of_the_call(middleware):
    middleware("nothing")
    with pytest.raises(ConfigurationError, match="nothing cannot be imported"):
        plain.delay()


def test_an_error_of_using_names_the_headers(middleware):
    middleware("TenantMiddleware")
    token = TENANT.set({1, 2})
    try:
        with pytest.raises(InvalidTask, match=r'headers\["tenant"\] is a set'):
            plain.delay()
    finally:
        TENANT.reset(token)


@pytest.mark.usefixtures("tenant")
def test_jobs_of_workflows_go_through_it(broker):
    with workflow("order", headers={"a": 1}) as flow:
        first = flow.map(plain, range(3))
        flow.after(first).add(plain.using(headers={"tenant": "other"}))

    assert [job.headers for job in take_all(broker)] == [{"a": 1, "tenant": "acme"}] * 3
    assert flow.handle.progress().steps[1].after == (0,)


def test_middleware_may_send_a_step_to_another_queue(broker, middleware):
    middleware("BulkMiddleware")

    with workflow("order") as flow:
        flow.map(plain, range(2))
        flow.map(plain, [])

    assert [step.queue for step in flow.handle.progress().steps] == ["bulk", "default"]
    ((call, handles),) = LOG
    assert call.workflow.id == flow.id
    assert [handle.id for handle in handles] == [flow.id] * 2


def test_middleware_may_not_make_a_member_unique(broker, middleware):
    middleware("UniqueMiddleware")

    with pytest.raises(InvalidWorkflow, match="plain, which is unique"), workflow("order") as flow:
        flow.add(plain)
