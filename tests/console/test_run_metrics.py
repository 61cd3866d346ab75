"""Run metrics, and when they are reported."""

import os

import pytest

from django_rtq.console import run_metrics as tally_module
from django_rtq.console.histogram import bucket_of
from django_rtq.console.run_metrics import CountedRuns, load_counts
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.outcome import ACKED, BURIED, EXPIRED, RETRIED, Outcome
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.run import Run
from django_rtq.core.worker.shared_memory import MAX_COUNTS, SharedState
from tests.app.tasks import note
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import snapshot

TASK = note.name
DONE = Outcome(ACKED, text='{"state":"succeeded"}')
ERROR = ValueError("it broke")


def run_of(client="x", seconds=0.5, *, queue=QUEUE):
    run = Run(queue, b"id", f'0 3 1 0 {client}\n{{"task":"{TASK}"}}'.encode(), worker="w1", now_ms=1)
    run.open()
    run.seconds = seconds
    return run


@pytest.fixture
def session(broker):
    session = WorkerSession(broker, SharedState(1), [QUEUE], base_name="host")
    session.sign_on()
    yield session
    session.close()
    session.sign_off()


def work(broker, session, *outcomes, client="x"):
    """Jobs that are claimed and end in these ways."""
    for _ in outcomes:
        queued_job(broker, body=f'{{"task":"{TASK}","args":["x"]}}', client=client)
    (claimed,) = session.fetch(len(outcomes), idle=True).claimed
    for job_id, record, outcome in zip(claimed.ids, claimed.records, outcomes, strict=True):
        run = Run(QUEUE, job_id, record, worker=session.worker, now_ms=claimed.now_ms)
        run.open()
        run.seconds = 0.25
        session.add(run, outcome)


def test_runs_are_counted_by_task_and_client():
    metrics = CountedRuns()
    for client, seconds in (("x", 0.5), ("x", 0.5), ("y", 2.0)):
        metrics.add_done(run_of(client, seconds), 30)

    ((counters, clients),) = metrics.take_due().values()

    run_ms, wait_ms, number, *told = counters
    assert dict(zip(told[::2], told[1::2], strict=True)) == {
        f"done {TASK}": 3,
        f"run_us {TASK}": 3_000_000,
        f"wait_ms {TASK}": 90,
        f"r{bucket_of(0.5)} {TASK}": 2,
        f"r{bucket_of(2.0)} {TASK}": 1,
        f"w{bucket_of(30)} {TASK}": 3,
    }
    assert number == len(told) / 2
    assert (run_ms, wait_ms) == (3000, 90)
    assert clients == (0, 0, 0, b"x", 2, 1_000_000, b"y", 1, 2_000_000)


def test_the_time_of_failed_runs_counts_for_the_task_only():
    metrics = CountedRuns()
    metrics.add_done(run_of(seconds=0.5), 30)
    metrics.add_failed(run_of(seconds=1.0), "failed", "retried")

    ((counters, _),) = metrics.take_due().values()

    run_ms, wait_ms, _, *told = counters
    of_task = dict(zip(told[::2], told[1::2], strict=True))
    assert (run_ms, wait_ms) == (500, 30)
    assert (of_task[f"run_us {TASK}"], of_task[f"wait_ms {TASK}"]) == (1_500_000, 30)


def test_each_queue_is_told_of_its_own():
    metrics = CountedRuns()
    for queue in (QUEUE, "low"):
        metrics.add_done(run_of(queue=queue), 0)

    assert set(metrics.take_due()) == {QUEUE, "low"}


def test_it_is_told_once_a_second_at_the_most(monkeypatch):
    now = 100.0
    monkeypatch.setattr(tally_module.time, "monotonic", lambda: now)
    metrics = CountedRuns()
    assert not metrics.take_due()

    metrics.add_done(run_of(), 0)
    assert metrics.take_due()
    metrics.add_done(run_of(), 0)
    assert not metrics.take_due()
    assert metrics.dump()

    now += 1
    assert metrics.take_due()
    assert not metrics.make_due()


def test_no_call_is_too_long_for_a_script():
    metrics = CountedRuns()
    for number in range(1200):
        metrics.add_done(run_of(f"client-{number}"), 0)

    (calls,) = metrics.take_due().values()

    assert max(map(len, calls)) <= 1503
    assert sum(call.count(b"client-7") for call in calls) == 1


def test_what_was_counted_travels_with_what_is_settled(redis, broker, session, readers):
    work(broker, session, DONE, DONE, Outcome(RETRIED, ERROR, 5.0), Outcome(BURIED, ERROR), Outcome(EXPIRED))

    session.settle()

    figures = readers.tasks.all()[TASK]
    assert (figures.done, figures.failed, figures.retried, figures.dead, figures.expired) == (2, 2, 1, 1, 1)
    assert figures.run_p50 == pytest.approx(0.25, rel=0.13)
    (client,) = readers.clients.busiest(QUEUE)
    assert (client.client, client.runs, client.busy_seconds, client.time) == ("x", 4, 1.0, 1.0)


def test_what_was_not_tried_is_not_counted(redis, broker, session):
    run = Run(QUEUE, b"id", b"nonsense", worker=session.worker, now_ms=1)

    session.add(run, Outcome(BURIED, ERROR, is_counted=False))
    session.settle()

    assert "tasks" not in snapshot(redis)


def test_who_leaves_tells_the_rest(redis, broker, session, readers, monkeypatch):
    monkeypatch.setattr("django_rtq.console.run_metrics.REPORT_SECONDS", 1000.0)
    work(broker, session, DONE)
    session.settle()
    work(broker, session, DONE, DONE)
    session.settle()
    assert readers.tasks.all()[TASK].done == 1

    session.sign_off()

    assert readers.tasks.all()[TASK].done == 3


def test_a_lost_connection_loses_no_count_that_did_not_arrive(redis, broker, session, readers):
    work(broker, session, DONE)
    redis.drop_connection("before")
    with pytest.raises(Exception, match="connection"):
        session.settle()

    session.settle()

    assert readers.tasks.all()[TASK].done == 1


def test_a_quiet_worker_keeps_no_counts_to_itself(redis, broker):
    child = WorkerProcess(broker, SharedState(1), WorkerOptions(queues=[QUEUE]), parent=os.getppid())
    child._session.sign_on()
    for _ in range(2):  # the second time it would not be due
        work(broker, child._session, DONE)
        child._report_all()

    counts = [int(redis.hget(key, f"done {TASK}")) for key in redis.scan_iter(f"{{rtq:{QUEUE}}}:tasks*")]
    assert sum(counts) == 2
    child._shut_down()


def test_what_was_counted_and_not_sent_lies_in_shared_memory(broker, monkeypatch):
    """But not what Redis has no outcome of: the supervisor counts that itself."""
    monkeypatch.setattr(tally_module, "REPORT_SECONDS", 1000.0)
    shared = SharedState(1)
    session = WorkerSession(broker, shared, [QUEUE], base_name="host")
    session.sign_on()

    def kept():
        counts = load_counts(shared.counts()[0])
        return {task: dict(one.outcomes) for task, one in counts[QUEUE].tasks.items()}

    work(broker, session, DONE)
    session.settle()  # with the first report
    assert kept() == {}
    work(broker, session, DONE, Outcome(RETRIED, ERROR, 0))
    assert kept() == {}
    session.settle()
    assert kept() == {TASK: {"done": 1, "failed": 1, "retried": 1}}
    work(broker, session, DONE)
    session.settle()
    counts = load_counts(shared.counts()[0])
    assert kept() == {TASK: {"done": 2, "failed": 1, "retried": 1}}
    assert list(counts[QUEUE].calls()) == [*session._metrics._queues[QUEUE].calls()][:1]
    session.report_metrics()
    assert kept() == {}
    session.close()
    session.sign_off()


def test_more_than_fits_into_shared_memory_is_not_kept():
    shared = SharedState(1)
    for dump in (b"x" * 10, b"x" * (MAX_COUNTS + 1)):
        shared.begin_counts(dump, b"")
        shared.confirm_counts()

    assert shared.counts()[0] == b""
