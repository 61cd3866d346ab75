"""Workflows are collected in a block, and sent as a whole when it ends."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_rtq import (
    InvalidTask,
    InvalidWorkflow,
    QueueFull,
    Unserializable,
    WorkflowFailed,
    WorkflowNotFound,
    WorkflowState,
    WorkflowTimeout,
    get_workflow,
    rtq,
    task,
    workflow,
)
from django_rtq.signals import workflow_ended
from tests.app import workflow_steps as tasks
from tests.core.tasks.test_queue_full import on_full
from tests.support.jobs import QUEUE, queued_job, receiving
from tests.support.snapshots import live_jobs
from tests.support.waiting import PATIENCE
from tests.support.workflows import claim_members, end


def test_nothing_is_sent_before_the_end_of_the_block(redis, broker):
    with workflow("flow") as flow:
        flow.map(tasks.double, range(3))
        assert live_jobs(redis) == {}

    assert len(live_jobs(redis)) == 3
    assert get_workflow(flow.id).state is WorkflowState.RUNNING


def test_a_block_that_raises_sends_nothing(redis, broker):
    flow = workflow("flow")
    with suppress(KeyError), flow:
        flow.add(tasks.double, 1)
        raise KeyError

    assert live_jobs(redis) == {}
    with pytest.raises(WorkflowNotFound):
        get_workflow(flow.id)


def test_jobs_have_the_client_and_the_headers_of_the_workflow(redis, broker):
    with workflow("flow", client="bakery", headers={"a": 1}) as flow:
        flow.add(tasks.double, 1)
        flow.add(tasks.double.using(client="other", headers={"b": 2}), 2)

    records = [record.partition("\n") for record in live_jobs(redis).values()]
    assert sorted([*head.split(" ", 4)[4:], body] for head, _, body in records) == [
        ["bakery", '{"task":"tests.app.workflow_steps.double","args":[1],"headers":{"a":1}}'],
        ["other", '{"task":"tests.app.workflow_steps.double","args":[2],"headers":{"b":2}}'],
    ]


def test_a_result_is_an_edge(redis, broker):
    with workflow("flow") as flow:
        first = flow.map(tasks.double, [1, 2])
        second = flow.add(tasks.add_up, first.results)
        flow.add(tasks.report, "x", total={"deep": [second.result]})

    assert [step.after for step in flow.handle.progress().steps] == [(), (0,), (1,)]
    assert len(live_jobs(redis)) == 2


def test_it_can_be_made_by_a_coroutine(redis, broker):
    async def make():
        async with workflow("flow") as flow:
            flow.add(tasks.double, 1)
        assert (await flow.handle.aprogress()).size == 1
        with pytest.raises(WorkflowTimeout, match="0 of 1 jobs are done"):
            await flow.handle.aget(0)

    async_to_sync(make)()


@pytest.mark.parametrize(("verb", "outcome"), [("ack", None), ("bury", WorkflowFailed)])
def test_many_coroutines_wait_for_its_end(redis, broker, verb, outcome):
    """More than there are threads for coroutines."""
    with workflow("flow") as flow:
        flow.add(tasks.double, 1)
    members = claim_members(broker)

    async def wait():
        waits = [asyncio.create_task(flow.handle.aget(PATIENCE)) for _ in range(100)]
        await asyncio.sleep(0)
        end(broker, verb, *members)
        return await asyncio.gather(*waits, return_exceptions=True)

    ends = async_to_sync(wait)()

    assert [type(error) if error else None for error in ends] == [outcome] * 100


def test_a_full_queue_refuses_all_of_it(redis, broker):
    """Later steps do not count."""
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=2"})

    with workflow("flow") as flow:
        flow.after(flow.map(tasks.double, range(2))).add_many(tasks.double, [((3,), {})] * 3)
    flow.handle.cancel()
    with pytest.raises(QueueFull, match="2"), workflow("flow") as flow:
        flow.map(tasks.double, range(3))

    assert live_jobs(redis) == {}
    with pytest.raises(WorkflowNotFound):
        get_workflow(flow.id)


def test_it_waits_for_room_where_that_is_set(redis, broker, settings, monkeypatch):
    broker.limits.change(QUEUE, {"run:queue": "max_waiting=1"})
    first = queued_job(broker)
    sleep = SimpleNamespace(sleep=lambda seconds: rtq.job(first.id).cancel())
    monkeypatch.setattr("django_rtq.workflows.builder.time", sleep)

    with on_full(on_full="wait", on_full_timeout=3600), workflow("flow") as flow:
        flow.add(tasks.double, 1)

    assert flow.handle.state is WorkflowState.RUNNING


def test_of_very_many_clients_the_queue_is_asked(redis, broker, monkeypatch):
    monkeypatch.setattr("django_rtq.workflows.builder.MOST_ROOMS", 2)
    broker.limits.change(QUEUE, {"run:clients": "max_waiting=1"})

    with workflow("flow") as flow:
        for client in ("x", "x", "y", "z"):
            flow.add(tasks.double.using(client=client), 1)

    assert len(live_jobs(redis)) == 4


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_it_waits_for_the_commit(redis, broker):
    with transaction.atomic():
        with workflow("flow", on_commit=True) as flow:
            flow.add(tasks.double, 1)
        assert live_jobs(redis) == {}

    assert len(live_jobs(redis)) == 1
    assert flow.handle.state is WorkflowState.RUNNING


@task(unique=True)
def once():
    """A unique task."""


def _of_another(flow):
    with workflow("other") as other:
        step = other.add(tasks.double, 1)
        flow.add(tasks.double, step.result)


def _waits_for_another(flow):
    with workflow("other") as other:
        flow.after(other.add(tasks.double, 1))


def _takes_the_result_of_any_end(flow):
    step = flow.add(tasks.double, 1)
    flow.after(step, ended=True).add(tasks.double, step.result)


def test_results_of_many_may_be_taken_at_any_end(redis, broker):
    """Those that did not succeed are left out."""
    with workflow("flow") as flow:
        steps = flow.map(tasks.double, [1, 2])
        flow.after(steps, ended=True).add(tasks.report, steps.results)

    assert len(live_jobs(redis)) == 2


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda flow: flow.add(once), InvalidWorkflow, r"unique. Add .*using\(unique=False\)"),
        (lambda flow: flow.add(print), TypeError, "needs a task"),
        (lambda flow: flow.add(tasks.double), TypeError, "missing a required argument"),
        (lambda flow: flow.add(tasks.double, object()), Unserializable, "number"),
        (lambda flow: flow.add(tasks.double, flow.add(tasks.double, 1)), Unserializable, r"Pass its \.result instead"),
        (lambda flow: flow.map(tasks.double, [[flow.map(tasks.double, [1])]]), Unserializable, r"\.results instead"),
        (lambda flow: flow.add_many(tasks.double, [1]), TypeError, "pairs"),
        (lambda flow: flow.after(1), TypeError, "takes steps"),
        (lambda flow: flow.map(tasks.double, 5), InvalidWorkflow, r"has a map\(\) over 5, which is no iterable"),
        *(
            (
                lambda flow, use=use: use(flow, flow.add(tasks.double, 1).result),
                InvalidWorkflow,
                r"context\.workflow\.map",
            )
            for use in (
                lambda flow, result: flow.map(tasks.double, result),
                lambda flow, result: result + 1,
                lambda flow, result: result[0],
                lambda flow, result: flow.add(tasks.report, f"total: {result}"),
                lambda flow, result: flow.add(tasks.report, "some") if result else None,
            )
        ),
        (lambda flow: list(flow.map(tasks.double, [1]).results), InvalidWorkflow, "when its job has run"),
        (lambda flow: flow.map(tasks.double, [1]).result, AttributeError, r"double has \.results"),
        (lambda flow: flow.add(tasks.double, 1).results, AttributeError, r"double has \.result$"),
        (_takes_the_result_of_any_end, InvalidWorkflow, r"double and takes its result, .* Leave out ended=True"),
        (_of_another, InvalidWorkflow, "cannot take a result"),
        (_waits_for_another, InvalidWorkflow, "belongs to another"),
        (lambda flow: [flow.on_death(tasks.report, name) for name in "ab"], InvalidWorkflow, "one on_death"),
        (
            lambda flow: [flow.add(replace(tasks.double, backend=backend), 1) for backend in ("", "reports")],
            InvalidWorkflow,
            "several Redis servers",
        ),
    ],
)
def test_what_cannot_be_added_is_refused(redis, broker, act, error, text):
    with pytest.raises(error, match=text), workflow("flow") as flow:
        act(flow)

    assert live_jobs(redis) == {}


def test_what_was_refused_is_not_there_and_the_rest_is_sent(redis, broker):
    with workflow("flow") as flow:
        step = flow.add(tasks.double, 1)
        flow.on_death(tasks.report, "a")
        for act in (
            lambda: flow.map(tasks.double, [2, {3}]),
            lambda: flow.add(tasks.double, step),
            lambda: flow.add(replace(tasks.double, backend="reports"), 1),
        ):
            with pytest.raises((Unserializable, InvalidWorkflow)):
                act()

    assert len(live_jobs(redis)) == 1
    assert [(each.task, each.size) for each in flow.handle.progress().steps] == [
        (tasks.double.name, 1),
        (tasks.report.name, 1),
    ]


def test_calls_may_come_from_a_generator_that_adds_steps(redis, broker):
    with workflow("flow") as flow:
        flow.map(tasks.double, (flow.add(tasks.double, number).result for number in range(2)))
        with pytest.raises(Unserializable):
            flow.map(tasks.double, ({flow.add(tasks.double, number)} for number in range(1)))

    steps = flow.handle.progress().steps
    assert [(step.number, step.size, step.after) for step in steps] == [
        (0, 1, ()),
        (1, 1, ()),
        (2, 2, (0, 1)),
        (3, 1, ()),
    ]


def test_a_refused_death_call_is_not_made_as_a_step(redis, broker):
    with workflow("flow") as flow:
        step = flow.add(tasks.double, 1)
        with pytest.raises(InvalidWorkflow, match="it may start before"):
            flow.on_death(tasks.report, step.result)

    assert len(flow.handle.progress().steps) == 1


def test_after_the_block_it_is_closed(redis, broker):
    with workflow("flow") as flow:
        step = flow.add(tasks.double, 1)

    with pytest.raises(InvalidWorkflow, match="inside of the block"):
        flow.add(tasks.double, 1)
    with pytest.raises(InvalidWorkflow, match="sent already"):
        _ = step.result


@pytest.mark.parametrize("error", [None, KeyError])
def test_it_has_one_block(redis, broker, error):
    flow = workflow("flow")
    with suppress(KeyError), flow:
        flow.add(tasks.double, 1)
        if error:
            raise error

    with pytest.raises(InvalidWorkflow, match=r"call workflow\(\) again"), flow:
        flow.add(tasks.double, 2)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: workflow(""), ValueError, "1 to 100 printable characters"),
        (lambda: workflow("x" * 101), ValueError, "1 to 100 printable characters"),
        (lambda: workflow("a\nb"), ValueError, "1 to 100 printable characters"),
        (lambda: workflow("x", key=""), ValueError, "1 to 100 printable characters"),
        (lambda: workflow("x", headers=5), ValueError, "workflow x: headers is 5, but has to be a dictionary"),
        (lambda: workflow("x", on_dead="stop"), ValueError, '"block", "cancel" or "go_on"'),
        (
            lambda: workflow("flow", on_commit="nodb"),
            InvalidTask,
            "workflow flow: on_commit is 'nodb', but has to be True, False, or the alias",
        ),
        (lambda: get_workflow(None), WorkflowNotFound, "an id is text, and this is None"),
    ],
)
def test_values_of_a_wrong_type_are_named(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_after_no_steps_jobs_begin_at_once(redis, broker):
    with workflow("flow") as flow:
        flow.after(*[]).add(tasks.double, 1)

    assert len(live_jobs(redis)) == 1


def test_limits_of_steps_and_edges(redis, broker, monkeypatch):
    monkeypatch.setattr("django_rtq.workflows.builder.StepCollector.most_steps", 3)
    monkeypatch.setattr("django_rtq.workflows.builder.MAX_EDGES", 1)
    monkeypatch.setattr("django_rtq.workflows.builder.MAX_MEMBERS", 2)
    with workflow("flow") as flow:
        first = [flow.map(tasks.double, []) for _ in range(2)]
        with pytest.raises(InvalidWorkflow, match="more than 1 edges"):
            flow.after(*first).add(tasks.double, 1)
        flow.map(tasks.double, [])
        with pytest.raises(InvalidWorkflow, match="more than 3 steps"):
            flow.map(tasks.double, [])
    with pytest.raises(InvalidWorkflow, match="more than 2 jobs"), workflow("flow") as flow:
        flow.map(tasks.double, range(3))


@pytest.fixture
def ended():
    """The ids and names of workflows of which receivers heard that they have ended."""
    heard = []
    with receiving(lambda workflow_id, name, **_: heard.append((workflow_id, name)), workflow_ended):
        yield heard


@pytest.mark.parametrize("size", [0, 1])
def test_receivers_hear_which_workflow_was_cancelled_or_has_no_jobs(redis, broker, ended, size):
    with workflow("month-end") as flow:
        flow.map(tasks.double, range(size))
    assert len(ended) == 1 - size

    flow.handle.cancel()

    assert ended == [(flow.id, "month-end")]


def test_it_says_which_jobs_were_cancelled(redis, broker, access):
    with workflow("flow") as flow:
        flow.map(tasks.double, [1, 2])
    for job_id in live_jobs(redis):
        access.cancel(job_id)

    with pytest.raises(WorkflowFailed, match=r"is failed\.\n.*double: 2 of 2 were cancelled, discarded or"):
        flow.handle.get(timeout=PATIENCE)
