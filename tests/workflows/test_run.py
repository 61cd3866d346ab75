"""Workflows with real workers."""

import pytest

from django_rtq.exceptions import WorkflowFailed
from django_rtq.workflows.builder import workflow
from django_rtq.workflows.handle import WorkflowState, get_workflow
from tests.app import workflow_steps as tasks
from tests.support.waiting import PATIENCE, wait_until


def test_steps_follow_each_other_and_take_results(rtq_worker, redis, journal):
    with workflow("month-end", client="bakery") as flow:
        doubled = flow.map(tasks.double, range(20))
        total = flow.add(tasks.add_up, doubled.results)
        flow.add(tasks.report, "total", total.result)
        flow.after(doubled).add(tasks.report, "doubled")
    rtq_worker()

    flow.handle.get(PATIENCE)

    progress = get_workflow(flow.id).progress()
    assert progress.state is WorkflowState.SUCCEEDED
    assert [(step.state, step.done, step.size) for step in progress.steps] == [
        ("succeeded", 20, 20),
        ("succeeded", 1, 1),
        ("succeeded", 1, 1),
        ("succeeded", 1, 1),
    ]
    assert list(flow.handle.results("double")) == [2 * number for number in range(20)]
    assert journal.ends("report total") == 1
    assert journal.starts("add_up") == 1


def test_a_dead_job_blocks_what_follows(rtq_worker, redis, inspector, journal):
    with workflow("month-end") as flow:
        refused = flow.map(tasks.refuse, ["a", "b"])
        flow.after(refused).add(tasks.report, "after")
        flow.on_death(tasks.report, "death")
    rtq_worker()

    with pytest.raises(WorkflowFailed, match=r"a is refused[^$]*requeue_dead\(\), or discarded"):
        flow.handle.get(PATIENCE)

    journal.wait("end", "report death")
    assert flow.handle.state is WorkflowState.BLOCKED
    assert journal.starts("report after") == 0
    wait_until(lambda: len(list(flow.handle.dead())) == 2)
    inspector.discard("default", [job_id for job_id, _ in flow.handle.dead()])
    wait_until(lambda: flow.handle.state is WorkflowState.FAILED)
    assert journal.starts("report death") == 1
