"""A job adds jobs to its own workflow."""

import pytest

from django_rtq import InvalidWorkflow, WorkflowState, task, workflow
from django_rtq.broker.job_steps import Holder
from django_rtq.jobs.context import JobContext
from django_rtq.testing import eager
from django_rtq.workflows.builder import AddedSteps
from tests.app import workflow_steps as tasks
from tests.support.waiting import PATIENCE
from tests.support.workflows import claim_members

STARTS = ["grow x", "grow xa", "grow xb", "grow xaa", "grow xab", "grow xba", "grow xbb"]
AFTER = ["report after xa", "report after xb", "report after x", "report end"]


def grown():
    """A workflow that grows twice, and a step that waits for all of it."""
    with workflow("flow") as flow:
        flow.after(flow.add(tasks.grow, "x", 2)).add(tasks.report, "end")
    return flow.handle


def test_what_follows_waits_at_any_depth(rtq_worker, redis, journal):
    """Each step after a step that grew, within one that grew, runs after all of that."""
    handle = grown()
    rtq_worker("--processes", 2)

    handle.get(PATIENCE)

    assert sorted(journal.names("start")) == sorted([*STARTS, *AFTER])
    ends = journal.names("end")
    for name in ("x", "xa", "xb"):
        assert max(ends.index(f"grow {name}{letter}") for letter in "ab") < ends.index(f"report after {name}")
    assert ends[-1] == "report end"
    assert len(handle.progress().steps) == 11


def test_added_steps_take_results(rtq_worker, redis, journal):
    with workflow("flow") as flow:
        flow.add(tasks.double_more, [1, 2, 3])
        flow.add(tasks.double_more, [10])
    rtq_worker()

    flow.handle.get(PATIENCE)

    assert journal.starts("report sum") == 2
    assert sorted(sum(handle) for handle in [flow.handle.results("double")]) == [12]


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


def test_other_jobs_have_no_workflow():
    with pytest.raises(InvalidWorkflow, match="plain call"):
        _ = JobContext().workflow
    with eager(propagate=True), pytest.raises(InvalidWorkflow, match="belongs to none"):
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
    added = AddedSteps(Holder("default", member.id, "w1", 0), headers={}, backend="")
    for _ in range(100):
        added.map(tasks.double, [])

    with pytest.raises(InvalidWorkflow, match="more than 100 steps"):
        added.map(tasks.double, [])
