"""A job adds jobs to its own workflow."""

from datetime import timedelta

import pytest

from django_rtq import InvalidWorkflow, WorkflowState, task, workflow
from django_rtq.core.jobs.context import JobContext
from django_rtq.testing import drain, eager
from django_rtq.workflows.builder import AddedSteps
from django_rtq.workflows.steps.store import Holder
from tests.app import workflow_steps as tasks
from tests.support.jobs import QUEUE
from tests.support.workflows import claim_members


def grown():
    """A workflow that grows twice, and a step that waits for all of it."""
    with workflow("flow") as flow:
        flow.after(flow.add(tasks.grow, "x", 2)).add(tasks.report, "end")
    return flow.handle


@pytest.mark.parametrize("made", ["grown", "double_more"])
def test_eager_runs_them(journal, made):
    with eager() as jobs:
        if made == "grown":
            handle = grown()
            assert jobs[-1].args == ["end"]
            assert len(jobs) == 11
        else:
            with workflow("flow") as flow:
                flow.add(tasks.double_more, [1, 2, 3])
            handle = flow.handle
            assert [run.result for run in jobs if run.task == tasks.report.name] == ["sum: 12"]

        assert handle.state is WorkflowState.SUCCEEDED


@task(takes_context=True)
def add_and_wait(context, scene):
    """Adds steps, waits, and adds more."""
    flow = context.workflow
    flow.map(tasks.report, ["before", "before, too"])
    SCENES[scene](context)
    flow.add(tasks.report, "after")


SCENES = {
    "wait": lambda context: context.wait("go", timeout=60),
    "sleep": lambda context: context.sleep(60),
    "fails once": lambda context: 1 // (context.attempt - 1),
}


@pytest.mark.parametrize("scene", SCENES)
def test_what_a_job_adds_before_it_waits_is_added_once_it_has_returned(redis, broker, access, journal, scene):
    with workflow("flow") as flow:
        flow.add(add_and_wait.using(max_attempts=2), scene)
        flow.after(flow.add(tasks.double, 1))
    handle = flow.handle
    drain(raise_errors=False)
    assert [step.task for step in handle.progress().steps] == [add_and_wait.name, tasks.double.name]

    if scene == "wait":
        (job_id,) = redis.hkeys(broker.keys.of(QUEUE).step_jobs)
        access.send(job_id.decode(), "go")
    drain(until=timedelta(hours=1))

    assert handle.state is WorkflowState.SUCCEEDED
    assert [(step.task, step.size, step.done) for step in handle.progress().steps[2:]] == [
        (tasks.report.name, 2, 2),
        (tasks.report.name, 1, 1),
    ]


@task(takes_context=True)
def add_in_a_step(context, scene):
    """Adds a job where a later run would not come by."""
    flow = context.workflow

    def add():
        flow.add(tasks.report, "lost")

    if scene == "loop":
        for _ in context.each("lines", [1]):
            add()
    else:
        getattr(context, scene)("more", add)


@pytest.mark.parametrize(
    ("scene", "where"), [("step", "step 'more'"), ("atomic_step", "step 'more'"), ("loop", "loop 'lines'")]
)
@pytest.mark.django_db(transaction=True)
def test_what_a_later_run_would_pass_by_cannot_add(redis, broker, scene, where):
    with workflow("flow") as flow:
        flow.add(add_in_a_step.using(max_attempts=1), scene)

    with pytest.raises(InvalidWorkflow, match=f"gets no steps within {where}"):
        drain()

    assert len(flow.handle.progress().steps) == 1


@task(takes_context=True)
def add_beside(context):
    """Adds jobs after a step, after a loop, and after one that it has left."""
    context.step("first", str)
    for _ in context.each("all", [1, 2]):
        pass
    for _ in context.each("some", [1, 2]):
        break
    context.workflow.add(tasks.report, "beside")


def test_behind_steps_and_loops_a_job_may_add(redis, broker, journal):
    with workflow("flow") as flow:
        flow.add(add_beside)

    drain()

    assert [step.done for step in flow.handle.progress().steps] == [1, 1]


def test_other_jobs_have_no_workflow():
    with pytest.raises(InvalidWorkflow, match=r"^Workflow is not there: this is a plain call"):
        _ = JobContext().workflow
    with eager(propagate=True), pytest.raises(InvalidWorkflow, match=r"^Workflow is not there: job .* belongs to none"):
        tasks.grow.delay("x", 1)


@task(exactly_once=True, takes_context=True)
def once(context):
    """A task that cannot add jobs."""
    context.workflow.add(tasks.report, "x")


@pytest.mark.django_db
def test_a_task_with_exactly_once_adds_nothing():
    with eager(), pytest.raises(InvalidWorkflow, match="exactly_once"), workflow("flow") as flow:
        flow.add(once)


def test_too_many_steps_are_refused(redis, broker):
    with workflow("flow") as flow:
        flow.add(tasks.double, 1)
    (member,) = claim_members(broker)
    added = AddedSteps(Holder("default", member.id, "w1", 0), headers={}, backend="", passed_by_later=str)
    for _ in range(100):
        added.map(tasks.double, [])

    with pytest.raises(InvalidWorkflow, match="more than 100 steps"):
        added.map(tasks.double, [])
