"""One job, from claimed to its outcome."""

import asyncio
import json
import signal
import time

import pytest

from django_rtq import signals
from django_rtq.core.conf.config import Config
from django_rtq.core.worker.outcome import ACKED, BURIED, EXPIRED, RETRIED, UNKNOWN_TASK, Outcome
from django_rtq.core.worker.process.running.executor import Executor
from django_rtq.core.worker.process.running.interrupts import MainThreadInterrupts
from django_rtq.core.worker.run import Run
from django_rtq.exceptions import PayloadTooLarge, TaskNotFound, TimeLimitExceeded
from tests.app.tasks import RESULTS
from tests.support.apps import member_id, needs
from tests.support.jobs import receiving

NOW_MS = 1_800_000_000_000
ID = b"01a1fa94eeb97e2fb167e897ae5634a7"


@pytest.fixture
def executor(shared):
    before = signal.getsignal(signal.SIGALRM)
    config = Config(version='4"4', max_payload_bytes=1000, kill_grace_seconds=3.0, unknown_task_timeout=60.0)
    executor = Executor(config, shared, MainThreadInterrupts().limit)
    yield executor
    executor.close()
    signal.signal(signal.SIGALRM, before)


def run_of(task, *args, header="0 3 {now} 0 client", failures=0, job_id=ID, **options):
    body = json.dumps({"task": f"tests.app.tasks.{task}", "args": args, **options})
    record = header.format(now=NOW_MS).encode() + b"\n" + body.encode()
    return Run("default", job_id, record, worker="w1", now_ms=NOW_MS, counts=(failures, 0))


def outcome_of(executor, run):
    outcome = executor.open(run)
    if outcome is None and run.task.is_async:
        return asyncio.run(executor.execute_async(run))
    return outcome or executor.execute(run)


@pytest.mark.parametrize("task", ["note", "asleep"])
def test_what_a_task_returns_is_kept(executor, journal, task):
    outcome = outcome_of(executor, run_of(task, "x", *([0] if task == "asleep" else [])))

    kept = json.loads(outcome.text)
    assert kept.pop("seconds") >= 0
    assert kept == {
        "state": "succeeded",
        "worker": "w1",
        "version": '4"4',
        "task": f"tests.app.tasks.{task}",
        "client": "client",
        "attempt": 1,
        "result": "x",
    }


@pytest.mark.parametrize("call", [("note", "x"), ("returns", "lambda")])
def test_what_nobody_wants_is_not_kept(executor, journal, call):
    assert outcome_of(executor, run_of(*call, result_ttl=0)) == Outcome(ACKED)


@needs("workflows")
def test_a_workflow_with_too_many_results_keeps_no_more(executor, journal, monkeypatch):
    """Only of steps whose results others take."""
    monkeypatch.setattr("django_rtq.workflows.run_part.full_workflows", {"0123456789ab"})
    outcomes = [
        outcome_of(executor, run_of("note", "x", job_id=member_id(flow, NOW_MS, 7, keeps=keeps).encode()))
        for flow, keeps in (("0123456789ab", True), ("0123456789ab", False), ("0123456789ac", True))
    ]

    assert [outcome.verb for outcome in outcomes] == [BURIED, ACKED, ACKED]
    assert "64 MB" in str(outcomes[0].error)


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_that_cannot_be_stored_is_a_failure_with_a_reason_and_no_second_run(executor, journal, kind):
    outcome = outcome_of(executor, run_of("returns", kind))

    assert outcome.verb == BURIED
    assert outcome.is_counted
    assert isinstance(outcome.error, PayloadTooLarge) == (kind == "huge")
    assert str(outcome.error)


def test_a_failure_is_tried_again_until_it_was_the_last(executor, journal):
    assert outcome_of(executor, run_of("raises", "base", failures=3)).verb == RETRIED
    assert outcome_of(executor, run_of("raises", "base", failures=4)).verb == BURIED
    assert outcome_of(executor, run_of("raises", "base", max_attempts=1)).verb == BURIED


@pytest.mark.parametrize("task", ["leave", "aleave"])
def test_who_wants_to_leave_has_failed(executor, journal, task):
    assert isinstance(outcome_of(executor, run_of(task, "x")).error, SystemExit)


def test_who_ran_out_of_memory_takes_the_process_along(executor, journal):
    with pytest.raises(MemoryError):
        outcome_of(executor, run_of("die", "x", "memory"))


@pytest.mark.parametrize("task", ["loop", "aloop"])
def test_a_limit_is_kept_and_the_supervisor_hears_of_it(executor, shared, journal, task):
    shared.start_batch([ID])
    shared.start(0)
    started = time.monotonic()
    outcome = outcome_of(executor, run_of(task, "x", time_limit=0.1))
    ended = time.monotonic()

    assert isinstance(outcome.error, TimeLimitExceeded)
    assert shared.overdue(started + 3.0) == []
    assert shared.overdue(ended + 3.0) == [ID.decode()]


def test_the_supervisor_hears_of_what_may_run_only_once(executor, shared, journal):
    shared.start_batch([ID])
    shared.start(0)
    outcome_of(executor, run_of("note", "x"))
    assert shared.running_once() == []
    outcome_of(executor, run_of("note", "x", header="0 0 {now} 0 "))
    assert shared.running_once() == [ID.decode()]


def test_an_unknown_task_is_told_as_such(executor):
    outcome = outcome_of(executor, run_of("of_next_week"))

    assert outcome.verb == UNKNOWN_TASK
    assert isinstance(outcome.error, TaskNotFound)


@pytest.mark.parametrize(
    ("expires_ms", "failures", "is_expired"),
    [(0, 0, False), (NOW_MS, 0, True), (NOW_MS + 1, 0, False), (NOW_MS - 1, 0, True), (NOW_MS - 1, 1, False)],
)
def test_a_job_expires_unless_it_was_started_in_time(executor, journal, expires_ms, failures, is_expired):
    run = run_of("note", "x", header=f"0 3 {{now}} {expires_ms} ", failures=failures)

    assert (outcome_of(executor, run) == Outcome(EXPIRED)) is is_expired
    assert journal.starts() == (0 if is_expired else 1)


@pytest.mark.parametrize("broken", [b"", b"\xff", b"0 3 1 0 \nnot", b"0 3 1 0 \n[]", b"0 3 1 0 \n{}"])
def test_a_record_that_cannot_be_read_is_buried_uncounted(executor, broken):
    outcome = outcome_of(executor, Run("default", ID, broken, worker="w1", now_ms=NOW_MS))

    assert outcome.verb == BURIED
    assert not outcome.is_counted


def test_a_start_is_told_and_a_receiver_that_fails_does_no_harm(executor, journal):
    seen = []

    def receive(*, job, **kwargs):
        seen.append((job.id, job.attempt))
        raise RuntimeError("a receiver")

    with receiving(receive, signals.job_started):
        outcomes = [
            outcome_of(executor, run_of("note", "x", failures=1)),
            outcome_of(executor, run_of("asleep", "x", 0)),
        ]

    assert [outcome.verb for outcome in outcomes] == [ACKED, ACKED]
    assert seen == [(ID.decode(), 2), (ID.decode(), 1)]
