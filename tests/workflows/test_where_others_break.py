"""Shapes and accidents for which other queues are known: the callback comes, once, with all results.

What needs a process that is killed is in test_kills.py, jobs that add jobs are in test_growth.py.
"""

import pytest

from django_rtq import Bury, WorkflowState, task, workflow
from django_rtq.testing import drain
from tests.app import workflow_steps as tasks
from tests.support.snapshots import live_jobs

pytestmark = pytest.mark.usefixtures("redis", "broker", "journal")


@task
def total(*numbers):
    """Of numbers, and of lists of them."""
    return sum(number if isinstance(number, int) else sum(number) for number in numbers)


calls = []


@task(max_attempts=1)
def refuse_first():
    """It fails for good, until it is requeued."""
    calls.append(1)
    if len(calls) == 1:
        raise Bury("not yet")


@pytest.mark.parametrize("size", [0, 1, 2])
def test_callback_comes_after_a_group_of_any_size_and_gets_a_list(size):
    with workflow("group") as flow:
        summed = flow.add(total, flow.map(tasks.double, range(size)).results)
        flow.add(tasks.report, "end", summed.result)

    drain()

    assert flow.handle.state is WorkflowState.SUCCEEDED
    assert list(flow.handle.results("total")) == [sum(2 * number for number in range(size))]


def test_a_failure_in_a_nested_chain_is_said_and_nobody_polls_for_it(redis, journal):
    calls.clear()
    with workflow("nested") as flow:
        refused = flow.add(refuse_first)
        inner = flow.after(refused).map(tasks.double, [1])
        flow.add(tasks.report, "end", flow.add(total, inner.results, flow.add(tasks.double, 2).result).result)

    drain(raise_errors=False)
    (dead,) = flow.handle.dead()

    assert flow.handle.state is WorkflowState.BLOCKED
    assert [*live_jobs(redis)] == [dead[0]]  # no job that looks again and again whether it has succeeded
    assert drain() == []
    assert flow.handle.requeue_dead() == 1
    assert drain()[-1].result == "end: 6"
    assert journal.starts("report end") == 1


def test_the_results_of_all_steps_of_a_task_are_there(redis):
    with workflow("flow") as flow:
        first, _, third = (flow.map(tasks.double, numbers) for numbers in ([1, 2], [3], [4]))
        flow.add(total, first.results, third.results)
    drain()

    assert [list(flow.handle.results(task)) for task in (tasks.double, "double")] == [[2, 4, 8]] * 2
    for unknown in ("triple", tasks.report, "ouble"):
        with pytest.raises(LookupError, match="has no step of"):
            flow.handle.results(unknown)
    with pytest.raises(LookupError, match="are not kept"):
        flow.handle.results(total)


def stored_bytes(redis, depth):
    """How much a chain of so many groups of two takes, each within the one before."""
    redis.flushdb()
    with workflow("nested") as flow:
        results = flow.map(tasks.double, [1, 2]).results
        for _ in range(depth):
            inner = flow.add(total, results).result
            results = flow.add_many(total, [((inner,), {}), ((inner,), {})]).results
    return sum(redis.memory_usage(key, samples=0) for key in redis.scan_iter())


def test_each_level_of_nested_groups_costs_the_same(redis):
    """Neither the whole of what is inside it, nor a copy for each of its jobs."""
    sizes = [stored_bytes(redis, depth) for depth in (20, 40, 60)]

    assert sizes[2] - sizes[1] < 1.5 * (sizes[1] - sizes[0])
