"""The worker process, run in the process of the test."""

import os
import signal
import threading

import pytest

from django_rtq import JobState, signals
from django_rtq.core.worker.options import EXIT_DONE, WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.exceptions import BrokerUnavailable
from tests.app import tasks
from tests.core.worker.conservation import places
from tests.support.apps import needs
from tests.support.jobs import QUEUE
from tests.support.receivers import receiving

SUPERVISOR, INIT = 4711, 1


@pytest.fixture
def parent(monkeypatch):
    """Whose child this process is; append another to make it an orphan."""
    parents, looks = [SUPERVISOR], []

    def getppid():
        looks.append(parents[-1])
        assert looks.count(INIT) < 100, "it goes on as an orphan"
        return parents[-1]

    monkeypatch.setattr(os, "getppid", getppid)
    return parents


@pytest.fixture
def make(broker, parent):
    """A child of this test; what it began is ended."""

    def make(concurrency=1, **options):
        options = WorkerOptions(queues=[QUEUE], concurrency=concurrency, **options)
        return WorkerProcess(broker, SharedState(concurrency), options, parent=SUPERVISOR)

    return make


def test_an_orphan_claims_nothing_more(make, parent, redis, journal):
    """Where the kernel does not kill it with its parent."""
    jobs = [tasks.note.delay(f"job-{number}") for number in range(3)]
    with receiving(lambda **_: parent.append(INIT), signals.job_succeeded):
        assert make().run() == EXIT_DONE

    assert [job.state for job in jobs] == [JobState.SUCCEEDED, JobState.QUEUED, JobState.QUEUED]
    assert redis.zcard("{rtq:default}:workers") == 0


@pytest.mark.parametrize(
    ("is_dozing", "whose", "woken"), [(True, SUPERVISOR, [signal.SIGCHLD]), (False, SUPERVISOR, []), (True, INIT, [])]
)
def test_who_claims_a_job_wakes_a_supervisor_that_dozes(make, parent, journal, monkeypatch, is_dozing, whose, woken):
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, signum: sent.append((pid, signum)))
    child = make(burst=True)
    child._shared.is_supervisor_dozing = is_dozing
    run, child._runner.run = child._runner.run, lambda runs: sent.append("runs") or run(runs)
    fetch, child._session.fetch = child._session.fetch, lambda *args, **options: adopted(fetch(*args, **options))

    def adopted(fetched):
        if fetched.found:
            parent.append(whose)
        return fetched

    tasks.note.delay("job")
    child.run()

    assert sent == [*((SUPERVISOR, signum) for signum in woken), "runs"]


def test_an_idle_orphan_waits_no_more(make, parent, redis, journal):
    child, waits = make(), []
    wait_and_claim = child._reader.wait_and_claim

    def become_orphan(claim, **options):
        parent.append(INIT)
        waits.append(claim)
        assert len(waits) < 3
        return wait_and_claim(claim, **options)

    child._reader.wait_and_claim = become_orphan

    assert child.run() == EXIT_DONE
    assert len(waits) == 1


@needs("console")
def test_an_idle_process_sends_its_metrics_while_its_claim_blocks(make, redis, journal, monkeypatch):
    monkeypatch.setattr("django_rtq.console.run_metrics.REPORT_SECONDS", 1000.0)
    monkeypatch.setattr("django_rtq.core.worker.process.process.IDLE_SECONDS", 0.05)
    for _ in range(2):  # the first is reported at once
        tasks.note.delay("job")
    child, slices = make(), []
    look = child._on_slice

    def note_slice():
        look()
        slices.append(redis.client_list())
        if len(slices) == 3:
            child._is_stopping = True

    child._on_slice = note_slice
    assert child.run() == EXIT_DONE

    (hour,) = redis.scan_iter("*tasks:*")
    assert redis.hget(hour, "done tests.app.tasks.note") == b"2"
    waits = [[c["id"] for c in clients if c["name"] == "rtq:worker-wait"] for clients in slices]
    assert waits[0] == waits[1] == waits[2]


def test_an_orphan_does_not_wait_for_redis(make, parent, broker):
    child = make()

    def be_away(*arguments):
        parent.append(INIT)
        assert len(parent) < 5
        raise BrokerUnavailable("away")

    broker.sign_on = broker.sign_off = be_away
    try:
        assert child.run() == EXIT_DONE
    finally:
        del broker.sign_on, broker.sign_off


def test_who_drains_sleeps_while_the_last_jobs_run(make, redis, journal):
    """One job is over and told: that is no news any more."""
    short, long = tasks.gate.delay("short", "first"), tasks.gate.delay("long", "second")
    child = make(concurrency=2)
    wait, seen = child._runner.wait, []

    def note(seconds):
        seen.append(wait(seconds))
        if seen[-2:] == [False, False]:
            journal.open("second")
        assert len(seen) < 100
        return seen[-1]

    def stop():
        journal.wait("start", "long")
        child.on_stop_signal()
        journal.open("first")

    child._runner.wait = note
    stopper = threading.Thread(target=stop)
    stopper.start()
    assert child.run() == EXIT_DONE
    stopper.join()

    assert (short.state, long.state) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert places(redis) == {}
