"""Workflows in tests: captured, at once, and from a private Redis."""

import asyncio
import sys
from datetime import timedelta

import pytest

from django_rtq import Bury, JobHandle, RedisNotAllowed, WorkflowFailed, WorkflowState, rtq, task, workflow
from django_rtq.console.reading.readers import readers_of
from django_rtq.exceptions import ConfigurationError
from django_rtq.testing import captured, eager
from django_rtq.testing.private_redis import shared_fake_server
from django_rtq.workflows.store import started_parts
from tests.app import journal
from tests.app import workflow_steps as tasks


@pytest.fixture(autouse=True)
def _journal(monkeypatch, tmp_path):
    monkeypatch.setenv(journal.FILE, str(tmp_path / "journal"))


def month_end(**options):
    """A diamond with results."""
    with workflow("month-end", **options) as flow:
        doubled = flow.map(tasks.double, [1, 2, 3])
        total = flow.add(tasks.add_up, doubled.results)
        flow.after(doubled).add(tasks.report, "beside")
        flow.add(tasks.report, "total", total.result)
    return flow.handle


def test_eager_runs_it_in_the_order_of_its_edges():
    with eager() as runs:
        handle = month_end()
        assert handle.state is WorkflowState.SUCCEEDED
        assert [run.task.rpartition(".")[2] for run in runs] == ["double"] * 3 + ["add_up", "report", "report"]
        assert sorted(run.result for run in runs[-2:]) == ["beside: None", "total: 12"]
        assert list(handle.results("double")) == [2, 4, 6]
        handle.get()


@task(takes_context=True, max_attempts=1)
def wait_for_approval(context):
    approved = context.wait("approved")
    if approved is None:
        raise Bury("not approved")
    return approved


def test_eager_goes_on_with_a_workflow_when_a_job_of_it_gets_its_event():
    with eager() as runs:
        with workflow("flow") as flow:
            flow.add(tasks.report, "end", flow.add(wait_for_approval).result)
        assert flow.handle.state is WorkflowState.RUNNING

        rtq.job(member_of(flow)).send("approved", 5)

        assert flow.handle.state is WorkflowState.SUCCEEDED
        assert runs[-1].result == "end: 5"


def test_eager_runs_delayed_members_at_once():
    with eager() as runs:
        with workflow("flow") as flow:
            doubled = flow.add(tasks.double.using(run_after=timedelta(days=3)), 1)
            flow.add(tasks.report, "end", doubled.result)

        assert flow.handle.state is WorkflowState.SUCCEEDED
        assert [run.result for run in runs] == [2, "end: 2"]


def test_eager_cancels_jobs_that_wait_for_an_event():
    with eager() as runs:
        with workflow("flow") as flow:
            flow.after(flow.add(wait_for_approval), ended=True).add(tasks.report, "end")
        with workflow("other") as other:
            other.add(wait_for_approval)
        job, members = wait_for_approval.delay(), [JobHandle(member_of(each), "default") for each in (flow, other)]

        assert other.handle.cancel()
        assert (job.cancel(), members[0].cancel()) == ("cancelled", "cancelled")

        assert [job.state, *(member.state for member in members)] == ["cancelled"] * 3
        assert (flow.handle.state, other.handle.state, runs[-1].result) == ("failed", "cancelled", "end: None")
    assert job.state == "cancelled"


def member_of(flow):
    (part,) = started_parts(flow.id, flow.handle.progress().fields)
    return part.id_of(0)


@task
async def add_later(first, second):
    return first + second


def test_eager_says_why_a_coroutine_function_cannot_run_within_an_event_loop():
    async def make():
        with eager(), workflow("flow") as flow:
            flow.add(add_later, 1, 2)

    with pytest.raises(RuntimeError, match=r"async with workflow\(\)"):
        asyncio.run(make())


@pytest.mark.parametrize("testing", [captured, eager])
def test_what_only_redis_can_do_is_refused(testing):
    with testing(), pytest.raises(RedisNotAllowed, match="private_redis"):
        readers_of().actions.done("requeue", "default", ["0" * 32])
    with testing(), pytest.raises(RedisNotAllowed, match="private_redis"):
        readers_of().queues.get("default")


def test_eager_raises_what_a_job_raises():
    with eager(), pytest.raises(Bury), workflow("flow") as flow:
        flow.add(tasks.refuse, "a")


def test_captured_collects_it():
    with captured() as jobs:
        handle = month_end(client="bakery")

        jobs.assert_workflow("month-end", steps={"double": 3, "add_up": 1, "report": 2})
        jobs.assert_enqueued(tasks.double, times=3, client="bakery")
        jobs.assert_not_enqueued(tasks.add_up)
        assert handle.state is WorkflowState.RUNNING
        with pytest.raises(WorkflowFailed, match=r"captured\(\) is active"):
            handle.get(1)
        with pytest.raises(AssertionError, match="made 0 times, not once"):
            jobs.assert_workflow("other")
        with pytest.raises(AssertionError, match="The steps of workflow month-end are"):
            jobs.assert_workflow("month-end", steps={"double": 1})


def test_captured_knows_keys():
    with captured() as jobs:
        first, second = month_end(key="may"), month_end(key="may")

        assert (second.id, second.duplicate) == (first.id, True)
        assert len(jobs) == 3


def test_captured_jobs_of_a_workflow_are_as_delay_makes_them():
    later = tasks.double.using(run_after=timedelta(days=3), priority=5, client="bakery", queue_name="low")
    with captured() as jobs:
        with workflow("flow") as flow:
            flow.add(later, 1)
        jobs.assert_enqueued(tasks.double, run_after=timedelta(days=3), client="bakery", queue="low")
        assert (jobs[0].priority, jobs[0].state) == (5, "scheduled")

        flow.handle.cancel()

        assert (jobs[0].state, flow.handle.state) == ("cancelled", "cancelled")
    jobs.assert_workflow("flow", steps={"double": 1})


@task
def make_flow(number):
    """Makes a workflow, and takes its results."""
    with workflow("inner") as flow:
        flow.add(tasks.add_up, flow.map(tasks.double, [number, 1]).results)
    flow.handle.get(1)
    return list(flow.handle.results("double"))


def test_eager_runs_workflows_that_jobs_make_before_these_go_on():
    with eager() as runs:
        assert make_flow.delay(2).get() == [4, 2]
        with workflow("outer") as flow:
            flow.add(tasks.report, "end", flow.add(make_flow, 3).result)
        flow.handle.get()

    assert [run.result for run in runs][-5:] == [6, 2, 8, [6, 2], "end: [6, 2]"]


@task(takes_context=True)
def remember(context):
    return context.step("one", lambda: 1)


def test_without_fakeredis_workflows_and_steps_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fakeredis", None)
    shared_fake_server.cache_clear()
    install = r"within {0}\(\) run in fakeredis, which is not installed: pip install \"fakeredis\[lua\]\""

    with eager() as runs:
        assert tasks.double.delay(2).get() == 4
        with pytest.raises(ConfigurationError, match=install.format("eager")):
            month_end()
        with pytest.raises(ConfigurationError, match=install.format("eager")):
            remember.delay()
    with captured(), pytest.raises(ConfigurationError, match=install.format("captured")):
        month_end()
    assert len(runs) == 2
