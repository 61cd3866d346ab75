"""What supervisors do for workflows: they settle what dead processes had finished, and tend them with heartbeats."""

from types import SimpleNamespace

import pytest

from django_rtq.core.worker.outcome import ACKED, Outcome
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.core.worker.supervisor.crash_recovery import settle_finished
from django_rtq.core.worker.supervisor.heartbeat import CHORE_SECONDS, Heartbeat
from django_rtq.workflows import for_core, workflow_store
from django_rtq.workflows import store as workflows
from tests.core.worker.supervisor import test_finished_jobs
from tests.core.worker.supervisor.test_finished_jobs import BODY, DONE, tell
from tests.support.jobs import QUEUE
from tests.support.snapshots import live_jobs, place_of
from tests.support.waiting import server_ms
from tests.support.workflows import FLOW, begun_flow, fields_of, parts_flow

child = test_finished_jobs.child


@pytest.mark.parametrize("slots", [1, 2])
def test_a_result_that_another_step_takes_is_never_dropped(redis, broker, slots):
    """Its job runs again; without the death of the process it does not."""
    shared = SharedState(slots)
    session = WorkerSession(broker, shared, [QUEUE], base_name="host")
    session.sign_on()
    begun_flow(broker, {"size": 2, "keep": True})
    shared._full_at = shared._text_at + 200
    runs = []
    for claimed in session.fetch(2, idle=True).claimed:
        for job_id, record in zip(claimed.ids, claimed.records, strict=True):
            body = record.replace(b"{}", BODY.encode())
            run = Run(claimed.queue, job_id, body, worker=session.worker, now_ms=claimed.now_ms)
            run.open()
            runs.append(run)
    ids = [run.job_id for run in runs]
    if slots == 1:
        shared.start_batch(ids)
    for place, run in enumerate(runs):
        run.entry = place if slots == 1 else shared.add_entry(run.job_id)
        shared.start(run.entry)
        session.add(run, Outcome(ACKED, text=DONE.text.replace('"x"', '"' + "x" * 3000 * place + '"')))
    assert (shared.running(), shared.waiting()) == ([], [ids[1].decode()])
    killed = shared.finished()
    settle_finished(broker, [QUEUE], session.worker, killed)
    assert broker.attempts(session.worker, [QUEUE]) == {QUEUE: {ids[1]: 1}}

    session.settle()

    assert shared.waiting() == ([] if slots == 2 else [ids[1].decode()])
    outcomes = workflow_store(broker).outcomes(FLOW, [0, 1])
    assert [outcome.endswith(b'x"}') for outcome in outcomes] == [False, True]
    session.close()


@pytest.mark.parametrize("by", ["process", "supervisor"])
@pytest.mark.parametrize("result", ["", DONE.text])
def test_a_job_whose_added_steps_redis_has_lost_runs_again(redis, broker, child, by, result):
    session, shared = child
    begun_flow(broker, {"next": "1"}, {"after": "0"})
    (claimed,) = session.fetch(1, idle=True).claimed
    record = claimed.records[0].replace(b"{}", BODY.encode())
    run = Run(QUEUE, claimed.ids[0], record, worker=session.worker, now_ms=claimed.now_ms)
    run.open()
    run.part = SimpleNamespace(has_grown=True)
    shared.start_batch([run.job_id])
    shared.start(0)
    session.add(run, Outcome(ACKED, text=result))

    if by == "supervisor":
        tell(broker, session, shared)
        assert broker.reclaim_child(QUEUE, session.worker, []) == [(run.id, "queued")]
    else:
        session.settle()
        session.reconcile()

    assert place_of(redis, run) == "lane:0:"
    assert fields_of(broker)["ends:0"] == "0 0 0"


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
