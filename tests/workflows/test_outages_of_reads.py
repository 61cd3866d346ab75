"""Redis is away when django_rtq asks it something for a job: that is no failure of the job."""

import asyncio

import pytest

from django_rtq import task, workflow
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.testing import drain
from django_rtq.workflows.steps.store import StepStore
from django_rtq.workflows.store import WorkflowStore

pytestmark = pytest.mark.usefixtures("broker")


@pytest.fixture
def away(monkeypatch):
    """Redis is away the first time that a method is called."""

    def fail_once(owner, name):
        method, calls = getattr(owner, name), []

        def fails(*args, **kwargs):
            calls.append(name)
            if len(calls) == 1:
                raise BrokerUnavailable("away")
            return method(*args, **kwargs)

        monkeypatch.setattr(owner, name, fails)

    return fail_once


@task
def one(value=1):
    return value


@task(max_attempts=1, takes_context=True)
def takes(context, value):
    return value, context.attempt


@task(max_attempts=1, takes_context=True)
async def atakes(context, value):
    return value, context.attempt


@task(max_attempts=1, batch=10)
def takes_together(calls):
    return [(call.args[0], call.attempt) for call in calls]


@task(max_attempts=1, takes_context=True)
def sums(context, values):
    return sum(values), context.attempt


@task(max_attempts=1, takes_context=True)
async def asums(context, values):
    async def total():
        return await asyncio.to_thread(sum, values)

    return (await asyncio.gather(total()))[0], context.attempt


@task(max_attempts=1, takes_context=True)
def adds(context):
    context.workflow.add(one)
    return 1, context.attempt


@task(max_attempts=1, takes_context=True)
def remembers(context):
    return context.step("a", int, 1), context.attempt


@task(max_attempts=1, takes_context=True)
async def aremembers(context):
    return await context.astep("a", int, 1), context.attempt


def ended():
    runs = [run for run in drain(raise_errors=False, until=5) if not run.task.endswith("one")]
    assert [run.state for run in runs] == ["retrying", "succeeded"]
    return runs[-1].result


@pytest.mark.parametrize("taking", [takes, atakes, takes_together])
def test_before_the_function_is_called(away, taking):
    away(WorkflowStore, "outcomes")
    with workflow("w") as flow:
        flow.add(taking, flow.add(one).result)

    assert ended() == [1, 1]


@pytest.mark.parametrize("summing", [sums, asums])
def test_while_it_reads_the_results_of_a_step(away, summing):
    away(WorkflowStore, "outcomes")
    with workflow("w") as flow:
        flow.add(summing, flow.map(one, [1, 1, 1]).results)

    assert ended() == [3, 1]


def test_when_it_adds_to_its_workflow(away):
    away(WorkflowStore, "add")
    with workflow("w") as flow:
        flow.add(adds)

    assert ended() == [1, 1]


@pytest.mark.parametrize(("remembering", "method"), [(remembers, "run"), (aremembers, "arun")])
def test_when_it_asks_what_it_remembers(away, remembering, method):
    away(StepStore, method)
    remembering.delay()

    assert ended() == [1, 1]
