"""One job that a process has claimed waits while another one runs."""

import os

import pytest

from django_rtq import JobState
from django_rtq.core.worker.options import EXIT_DONE, WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.process.running import batch
from django_rtq.core.worker.shared_memory import SharedState
from tests.app import tasks
from tests.core.worker.conservation import assert_all_settled, places
from tests.support.jobs import QUEUE
from tests.support.waiting import start_thread, wait_until


@pytest.fixture
def process(broker):
    """A process that claims one job ahead, whatever its former jobs."""
    options = WorkerOptions(queues=[QUEUE], burst=True)
    process = WorkerProcess(broker, SharedState(1), options, parent=os.getppid())
    process._runner._size.jobs = 2
    return process


@pytest.fixture
def meanwhile():
    """Runs a function in a thread while the test runs jobs."""
    threads = []

    def start(act):
        threads.append(start_thread(act))

    yield start
    for thread in threads:
        thread.join()


@pytest.fixture
def patient(monkeypatch):
    """No job is given back because of the time."""
    monkeypatch.setattr(batch, "MAX_AHEAD_SECONDS", 1000)


def jobs_of(*clients):
    """A job that waits at a gate, and one more of each of the other clients."""
    first, *others = clients
    slow = tasks.gate.using(client=first).delay(first, "gate")
    return [slow, *(tasks.note.using(client=client).delay(client) for client in others)]


def test_a_job_ahead_goes_back_with_its_turn_when_the_other_one_runs_for_too_long(process, redis, journal, meanwhile):
    slow, ahead, third = jobs_of("a", "b", "c")
    states = []

    def look():
        journal.wait("start", "a")
        wait_until(lambda: ahead.state is JobState.QUEUED)
        states.extend(job.state for job in (slow, ahead, third))
        journal.open("gate")

    meanwhile(look)
    assert process.run() == EXIT_DONE

    assert states == [JobState.RUNNING, JobState.QUEUED, JobState.QUEUED]
    assert journal.names() == ["a", "b", "c"]
    assert_all_settled(redis)


@pytest.mark.parametrize("how", ["stop", "quiet"])
def test_a_job_ahead_goes_back_at_once_when_the_process_is_to_rest(process, redis, journal, meanwhile, patient, how):
    slow, ahead, _ = jobs_of("a", "b", "c")

    def rest():
        journal.wait("start", "a")
        assert ahead.state is JobState.RUNNING
        if how == "stop":
            process.on_stop_signal()
        else:
            process._shared.is_quiet = True
            process.on_control_signal()
        wait_until(lambda: ahead.state is JobState.QUEUED)
        assert slow.state is JobState.RUNNING
        journal.open("gate")
        if how == "quiet":
            wait_until(lambda: process._shared.is_resting)
            assert ahead.state is JobState.QUEUED
            process._shared.is_quiet = False

    meanwhile(rest)
    assert process.run() == EXIT_DONE

    assert journal.names() == (["a"] if how == "stop" else ["a", "b", "c"])
    assert len(places(redis)) == (2 if how == "stop" else 0)


def test_the_outcome_of_the_first_job_is_told_while_the_second_one_still_runs(process, redis, journal, meanwhile):
    first, slow = tasks.note.delay("first"), tasks.gate.delay("slow", "gate")

    def look():
        journal.wait("start", "slow")
        wait_until(lambda: first.state is JobState.SUCCEEDED)
        assert slow.state is JobState.RUNNING
        journal.open("gate")

    meanwhile(look)
    assert process.run() == EXIT_DONE
    assert_all_settled(redis)


def test_short_jobs_share_round_trips_while_enough_of_them_wait(broker, process, redis, journal, monkeypatch):
    monkeypatch.setattr(batch, "MEAN_LIMIT_SECONDS", 0.0)  # all are short, and none so short that batches grow
    monkeypatch.setattr(batch, "MAX_ACK_DELAY_SECONDS", 0.0)
    process._runner._size.jobs = 1
    for number in range(24):
        tasks.note.delay(f"job-{number}")
    claims = claims_of(process)
    assert process.run() == EXIT_DONE

    assert claims[: batch.BUSY_CLAIMS] == [1] * batch.BUSY_CLAIMS
    assert claims[batch.BUSY_CLAIMS : -1] == [2] * 10
    assert journal.names() == [f"job-{number}" for number in range(24)]


def test_no_job_is_claimed_ahead_where_there_are_limits(broker, process, redis, journal, monkeypatch, rtq):
    monkeypatch.setattr(batch, "MEAN_LIMIT_SECONDS", 0.0)
    monkeypatch.setattr(batch, "MAX_ACK_DELAY_SECONDS", 0.0)
    process._runner._size.jobs = 1
    rtq.queues[QUEUE].limit(max_running=100)
    for number in range(8):
        tasks.note.delay(f"job-{number}")
    claims = claims_of(process)
    assert process.run() == EXIT_DONE

    assert set(claims) == {1}


def claims_of(process):
    """How many jobs each claim of a process wants; what only settles is none."""
    claims, fetch = [], process._session.fetch

    def note(wanted, **options):
        if wanted:
            claims.append(wanted)
        return fetch(wanted, **options)

    process._session.fetch = note
    return claims
