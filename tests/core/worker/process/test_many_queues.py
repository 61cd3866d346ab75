"""A worker with many queues asks few of them, and leaves no work signal with itself."""

import os

import pytest

from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.process.process import WorkerProcess
from django_rtq.core.worker.shared_memory import SharedState
from tests.support.jobs import queued_job
from tests.support.snapshots import snapshot
from tests.support.waiting import PATIENCE

QUEUES = ["high", "middle", "low"]
SIGNAL = {"work": 0}


@pytest.fixture
def process(broker):
    """A process of this test, signed on, whose loop does not run."""
    options = WorkerOptions(queues=QUEUES, concurrency=2)
    process = WorkerProcess(broker, SharedState(2), options, parent=os.getppid())
    process._session.sign_on()
    yield process
    process._reader.close()
    process._runner.stop()
    process._session.close()


@pytest.fixture
def asked(broker, monkeypatch):
    """The queues of each claim."""
    claim, asked = broker.claim, []

    def note(worker, queues, *arguments, **options):
        asked.append(list(queues))
        return claim(worker, queues, *arguments, **options)

    monkeypatch.setattr(broker, "claim", note)
    return asked


def found(process, wanted=1, **options):
    return [part.queue for part in process._session.fetch(wanted, idle=1, **options).claimed]


def test_the_queues_up_to_the_one_that_had_work_are_asked_first(redis, broker, process, asked):
    for _ in range(2):
        queued_job(broker, queue="middle")

    assert [found(process) for _ in range(3)] == [["middle"], ["middle"], []]
    assert asked == [QUEUES, QUEUES[:2], QUEUES[:2], QUEUES[2:]]


def test_work_in_the_other_queues_is_found_at_once(redis, broker, process, asked):
    queued_job(broker, queue="high")
    queued_job(broker, queue="low")

    assert [found(process) for _ in range(2)] == [["high"], ["low"]]
    assert asked == [QUEUES, ["high"], ["middle", "low"]]


def test_who_was_woken_asks_all(redis, broker, process, asked):
    queued_job(broker, queue="high")
    found(process)
    queued_job(broker, queue="low")

    assert found(process, is_woken=True) == ["low"]
    assert asked == [QUEUES, QUEUES]


def test_a_work_signal_is_put_back_if_there_was_work_before_its_queue(redis, broker, process):
    queued_job(broker, queue="low")
    assert process._reader.wait(PATIENCE)
    queued_job(broker, queue="middle")
    redis.zpopmin(broker.keys.of("middle").work_signal)  # by another worker
    process._runner.wanted = lambda: 1

    assert [part.queue for part in process._fetch().claimed] == ["middle"]

    after = snapshot(redis)
    assert after["low:work_signal"] == SIGNAL
    assert "middle:work_signal" not in after


def test_a_work_signal_is_not_put_back_if_its_work_was_claimed(redis, broker, process):
    for queue in ("high", "middle"):
        queued_job(broker, queue=queue)
    redis.zpopmin(broker.keys.of("high").work_signal)
    assert process._reader.wait(PATIENCE)

    assert [part.queue for part in process._fetch().claimed] == ["high", "middle"]
    assert not [key for key in snapshot(redis) if "work_signal" in key]


def test_the_claim_of_an_idle_worker_puts_it_back_too(redis, broker, process):
    for queue in ("high", "low"):
        queued_job(broker, queue=queue)
    redis.zpopmin(broker.keys.of("high").work_signal)
    process._reader.connect()
    process._session.reconcile()  # because of the new connection

    assert [part.queue for part in process._wait_and_claim().claimed] == ["high"]
    assert snapshot(redis)["low:work_signal"] == SIGNAL


def test_a_signal_that_comes_when_there_is_no_free_slot_is_left_to_others(redis, broker, process):
    process._reader.wait(0)
    queued_job(broker, queue="low")
    process._reader._connection.can_read(timeout=PATIENCE)

    process._reader.leave()

    assert not process._reader.is_waiting
    assert snapshot(redis)["low:work_signal"] == SIGNAL
