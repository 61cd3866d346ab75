"""What supervisors do for workflows with their heartbeats."""

from types import SimpleNamespace

import pytest

from django_rtq.core.worker.supervisor.heartbeat import CHORE_SECONDS, Heartbeat
from django_rtq.workflows import for_core, workflow_store
from django_rtq.workflows import store as workflows
from tests.support.jobs import QUEUE
from tests.support.server_clock import server_ms
from tests.support.snapshots import live_jobs
from tests.support.workflows import FLOW, parts_flow


@pytest.fixture
def heartbeat(broker):
    return Heartbeat(broker, [QUEUE, "low"], list, promotes=True)


def test_while_a_cancelled_workflow_has_jobs_that_wait_ticks_come_soon(redis, broker, heartbeat, monkeypatch):
    monkeypatch.setattr(workflows, "CANCELLED_IN_HEARTBEAT", 4)
    workflow_store(broker).start(workflow_store(broker).store(parts_flow(6))[2])
    workflow_store(broker).cancel(FLOW)
    redis.zadd(broker.keys.of(QUEUE).unstarted, {FLOW: server_ms(redis) - workflows.STALLED_MS - 1}, xx=True)

    assert heartbeat.tick() == CHORE_SECONDS
    assert len(live_jobs(redis)) == 2
    assert heartbeat.tick() > CHORE_SECONDS
    assert live_jobs(redis) == {}


def test_a_heartbeat_leaves_the_rest_of_a_large_step_to_the_next_one_which_comes_soon(
    redis, broker, heartbeat, monkeypatch
):
    heartbeat._chore_seconds = 0.0
    workflow_store(broker).store(parts_flow(20))
    unstarted = broker.keys.of(QUEUE).unstarted

    intervals = []
    for _ in range(3):
        redis.zadd(unstarted, {FLOW: server_ms(redis) - workflows.STALLED_MS - 1}, xx=True)
        intervals.append(heartbeat.tick())

    assert [interval == CHORE_SECONDS for interval in intervals[:2]] == [True, True]
    assert len(live_jobs(redis)) == 20


def test_workflows_are_compared_with_their_jobs_once_in_a_lease(broker, monkeypatch):
    workflow_store(broker).store(parts_flow(1))
    compared, lease = [], broker.config.lease_seconds
    monkeypatch.setattr(workflows.WorkflowStore, "compare", lambda self, **options: compared.append(options))
    monkeypatch.setattr(for_core, "time", SimpleNamespace(monotonic=iter([0, 0, lease, lease, lease]).__next__))
    _, compare = for_core.chores(broker, [QUEUE])

    assert [compare.do((), until) for until in (1, 2, 3)] == [False] * 3
    assert compared == [{"until": 2}]
