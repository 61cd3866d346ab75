"""Workflows with real workers."""

from django_rtq.workflows.builder import workflow
from django_rtq.workflows.handle import WorkflowState, get_workflow
from tests.app import workflow_steps as tasks
from tests.support.waiting import PATIENCE


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
