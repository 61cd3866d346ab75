"""The worker process, run in the process of the test: its jobs, their progress, and receivers of their signals."""

import json
import os
import signal
import threading

import pytest
from django.utils import timezone, translation

from django_rtq import JobState, signals
from django_rtq.core.jobs.context import current_job
from django_rtq.core.worker.options import EXIT_DONE, WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess, runner_class
from django_rtq.core.worker.process.progress import ProgressWriter
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.exceptions import BrokerUnavailable
from tests.app import long_tasks, tasks
from tests.app.context_tasks import TENANT
from tests.core.worker.claimed_runs import claim_unread
from tests.core.worker.conservation import assert_all_settled, places
from tests.support.apps import needs
from tests.support.jobs import QUEUE, queued_job, receiving
from tests.support.waiting import PATIENCE, start_thread, wait_until

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
    stopper = start_thread(stop)
    assert child.run() == EXIT_DONE
    stopper.join()

    assert (short.state, long.state) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert places(redis) == {}


OUTCOMES = (signals.job_succeeded, signals.job_retried, signals.job_buried, signals.job_expired)


@pytest.fixture(params=[1, 2], ids=["one slot", "two slots"])
def runner(request, broker, session):
    runner = runner_class(request.param)(broker.config, SharedState(request.param), session)
    yield runner
    runner.stop()


@pytest.fixture
def heard():
    """The tenant that receivers find at the start and at the end of each job, in order, and the job that they see."""
    found = []

    def begin(*, job, **kwargs):
        found.append((job.id, "start", TENANT.get(), current_job().job_id))
        if job.args[0]:
            TENANT.set(job.args[0])
            translation.activate("de")
            timezone.activate("Asia/Tokyo")

    def end(*, job, **said):
        found.append((job.id, said.get("result"), TENANT.get(), current_job().job_id))

    with receiving(begin, signals.job_started), receiving(end, *OUTCOMES):
        yield found


def run(broker, session, runner, task, *names):
    """The ids of jobs that have run, one after the other."""
    body = '{"task":"tests.app.%s","args":[%s]}'
    jobs = [queued_job(broker, body=body % (task, json.dumps(name))) for name in names]
    for _ in jobs:
        runner.run(claim_unread(session, 1))
        wait_until(lambda: runner.is_idle)
    return [job.id for job in jobs]


@pytest.mark.parametrize("task", ["context_tasks.tenant", "context_tasks.atenant"])
def test_what_a_receiver_of_job_started_sets_holds_for_that_job_alone(broker, session, runner, heard, task):
    first, second, third = run(broker, session, runner, task, "one", None, "three")

    assert [(job_id, tenant, seen) for job_id, _, tenant, seen in heard] == [
        (first, None, first),
        (first, "one", first),
        (second, None, second),
        (second, None, second),
        (third, None, third),
        (third, "three", third),
    ]
    assert [json.loads(result)["result"] for _, result, _, _ in heard[1::2]] == [
        ["one", "de", "Asia/Tokyo"],
        [None, "en", "UTC"],
        ["three", "de", "Asia/Tokyo"],
    ]
    assert TENANT.get() is None


@pytest.mark.parametrize("task", ["tasks.attempts", "tasks.raises", "tasks.aleave"])
def test_receivers_of_a_failure_find_it_too(broker, session, runner, heard, journal, task):
    (job_id,) = run(broker, session, runner, task, "one")

    assert [(entry[0], entry[2]) for entry in heard] == [(job_id, None), (job_id, "one")]


def test_what_a_receiver_sets_for_a_job_that_never_began_is_seen_by_no_other(broker, session, runner, heard):
    with receiving(lambda **_: TENANT.set("left"), signals.job_buried):
        queued_job(broker, body="no JSON")
        runner.run(claim_unread(session))
        wait_until(lambda: runner.is_idle)
        (job_id,) = run(broker, session, runner, "context_tasks.tenant", None)

    assert [entry[2] for entry in heard if entry[0] == job_id] == [None, None]
    assert TENANT.get() is None


@pytest.fixture
def reports():
    """A writer, and what it writes."""
    written = []
    reports = ProgressWriter(written.append)
    yield reports, written
    reports.stop()


def test_the_last_word_of_each_job_is_written(reports):
    reports, written = reports
    for number in range(1000):
        for job in "ab":
            reports.report("w1", "mail", job, str(number))
    wait_until(lambda: written and [written[-1].get(("w1", "mail", job)) for job in "ab"] == ["999", "999"])

    assert len(written) <= 2


def test_words_from_many_threads_are_all_heard(reports):
    reports, written = reports

    def talk(job):
        for number in range(300):
            reports.report("w1", "mail", job, str(number))

    threads = [start_thread(talk, str(job)) for job in range(8)]
    for thread in threads:
        thread.join()
    last = {}
    wait_until(lambda: [last.update(reports) for reports in written] and list(last.values()) == ["299"] * 8)


def test_what_could_not_be_written_is_written_later_unless_there_is_something_newer():
    tries, written = [], []

    def write(written_now):
        tries.append(written_now)
        if len(tries) == 1:
            writer.report("w1", "mail", "a", "newer")
            raise BrokerUnavailable("away")
        written.append(written_now)

    writer = ProgressWriter(write)
    writer.report("w1", "mail", "a", "older")
    wait_until(lambda: written)
    writer.stop()

    assert written[0] == {("w1", "mail", "a"): "newer"}


def test_who_says_nothing_costs_no_thread_and_stops_at_once():
    writer = ProgressWriter(lambda reports: None)
    writer.stop()

    assert "rtq-progress" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(("concurrency", "task"), [(1, "count_up"), (3, "acount_up")])
def test_a_job_says_how_far_it_is(rtq_worker, redis, journal, concurrency, task):
    worker = rtq_worker("--concurrency", concurrency)
    jobs = [getattr(long_tasks, task).delay(f"job-{i}", "gate") for i in range(concurrency)]
    wait_until(lambda: all(job.refresh().progress and job.refresh().progress.done == 2000 for job in jobs))

    for i, job in enumerate(jobs):
        progress = job.refresh().progress
        assert (progress.total, progress.text) == (2000, f"job-{i} waits")
    journal.open("gate")
    for job in jobs:
        assert job.get(PATIENCE) == job.id
        assert job.refresh().progress is None
    assert_all_settled(redis, worker)
    assert not redis.exists("{rtq:default}:progress")
