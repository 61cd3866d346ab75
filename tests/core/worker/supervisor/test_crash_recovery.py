"""Jobs of crashed processes are reclaimed; a stop waits for that while Redis is reachable."""

from unittest import mock

import pytest

from django_rtq import signals
from django_rtq.core.broker.one_job import access_to_jobs
from django_rtq.core.broker.settlement import Settlement
from django_rtq.core.jobs.job import write_body
from django_rtq.core.worker.run import make_metrics
from django_rtq.core.worker.shared_memory import SharedState
from django_rtq.core.worker.supervisor import crash_recovery as module
from django_rtq.core.worker.supervisor.crash_recovery import CrashRecovery
from django_rtq.exceptions import BrokerUnavailable
from tests.support.apps import needs
from tests.support.commands import body
from tests.support.jobs import QUEUE, WORKER, claimed_job, receiving
from tests.support.snapshots import place_of
from tests.support.waiting import wait_until


@pytest.fixture
def shared():
    shared = SharedState(1)
    shared.set_name(WORKER)
    return shared


@pytest.fixture
def woken():
    """How often the main thread was woken."""
    return []


@pytest.fixture
def crash_recovery(broker, woken):
    crash_recovery = CrashRecovery(broker, [QUEUE, "low"], lambda: woken.append(True))
    yield crash_recovery
    crash_recovery.stop()


def crashes(redis, job):
    return int(redis.hget(f"{{rtq:{QUEUE}}}:crashes", job.id) or 0)


def test_a_tick_takes_back_what_was_added_and_wakes_the_main_thread(redis, broker, crash_recovery, shared, woken):
    job = claimed_job(broker)
    assert not crash_recovery.is_pending
    crash_recovery.add(shared, crashed=[job.id])
    assert crash_recovery.is_pending
    crash_recovery.tick()

    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 1)
    assert not crash_recovery.is_pending
    assert woken


def test_a_child_that_never_had_a_name_leaves_nothing(crash_recovery):
    crash_recovery.add(SharedState(1), crashed=[])

    assert not crash_recovery.is_pending


def test_what_is_added_is_taken_back_at_once_in_its_own_thread(redis, broker, crash_recovery, shared):
    job = claimed_job(broker)
    crash_recovery.start()
    wait_until(lambda: crash_recovery.last_success_at > 0)
    crash_recovery.add(shared, crashed=[])

    wait_until(lambda: crash_recovery.is_done)
    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 0)


def test_while_redis_is_away_there_is_no_hope_and_afterwards_there_is(redis, broker, crash_recovery, shared, caplog):
    job = claimed_job(broker)
    crash_recovery.add(shared, crashed=[])
    for _ in range(2):
        redis.answer_once(b"-LOADING for a while\r\n")
        with pytest.raises(BrokerUnavailable):
            crash_recovery.tick()
        assert not crash_recovery.is_pending
    crash_recovery.tick()

    assert place_of(redis, job) == "lane:0:"
    assert caplog.text.count("are reclaimed later") == 1
    crash_recovery.add(shared, crashed=[])
    assert crash_recovery.is_pending


def test_a_redis_that_hangs_is_given_up(broker, crash_recovery, shared, monkeypatch):
    claimed_job(broker)
    crash_recovery.reply_timeout_seconds = 0.0
    seen = []
    monkeypatch.setattr(module, "settle_finished", lambda *args, **counts: seen.append(crash_recovery.is_pending))
    crash_recovery.add(shared, crashed=[])

    assert crash_recovery.is_pending  # Redis is not asked yet: the thread has not had its turn
    crash_recovery.tick()
    assert seen == [False]


def test_signals_are_sent_when_all_is_taken_back(redis, broker, crash_recovery, shared):
    """A receiver that takes its time holds up no job."""
    jobs, shared_states = [claimed_job(broker), claimed_job(broker, worker="w2")], [shared, SharedState(1)]
    shared_states[1].set_name("w2")
    seen = []

    with receiving(lambda **_: seen.append([place_of(redis, job) for job in jobs]), signals.job_reclaimed):
        for each in shared_states:
            crash_recovery.add(each, crashed=[])
        crash_recovery.tick()

    assert seen == [["lane:0:", "lane:0:"]] * 2


def test_a_process_whose_jobs_cannot_be_settled_as_they_should_holds_up_no_other(
    redis, broker, crash_recovery, shared, monkeypatch
):
    job, other = claimed_job(broker, body=body("tests.app.tasks.note")), claimed_job(broker, worker="w2")
    second = SharedState(1)
    second.set_name("w2")

    def fail(*args, **kwargs):
        raise ZeroDivisionError("the task's backoff")

    monkeypatch.setattr(module, "decide", fail)
    crash_recovery.add(shared, crashed=[], overdue=[job.id])
    crash_recovery.add(second, crashed=[])
    crash_recovery.tick()

    assert (place_of(redis, job), crashes(redis, job)) == ("lane:0:", 1)
    assert place_of(redis, other) == "lane:0:"


def test_a_job_that_was_killed_for_its_time_limit_says_how_long_it_ran(broker, crash_recovery, shared):
    job = claimed_job(broker, body=write_body("tests.app.tasks.note", "", '"time_limit":30'))
    crash_recovery.add(shared, crashed=[], overdue=[job.id])
    crash_recovery.tick()

    (failed,) = access_to_jobs("").find(job.id).errors
    assert failed["seconds"] == 35


def recovery_that_notes(broker):
    """A recovery, and the clients whose jobs it blames."""
    noted = []
    return CrashRecovery(broker, [QUEUE, "low"], note_crash=noted.append), noted


def test_the_clients_of_the_jobs_that_are_blamed_are_noted_before_these_are_taken_back(broker, shared):
    recovery, noted = recovery_that_notes(broker)
    bad, innocent = claimed_job(broker, client="bad"), claimed_job(broker, client="innocent")
    low = claimed_job(broker, client="bad", queue="low")
    recovery.add(shared, crashed=[bad.id, low.id], blamed=[bad.id, low.id, "unknown"])
    recovery.tick()

    assert noted == [{(QUEUE, "bad"), ("low", "bad")}]
    assert innocent


def test_a_process_without_blamed_jobs_blames_nobody(broker, shared):
    recovery, noted = recovery_that_notes(broker)
    job = claimed_job(broker, client="bad")
    recovery.add(shared, crashed=[job.id])
    recovery.tick()

    assert noted == []


@needs("console")
def test_what_a_killed_process_had_counted_is_sent_once(redis, broker, crash_recovery, shared, monkeypatch):
    counts = make_metrics()
    for queue, task in ((QUEUE, "app.one"), (QUEUE, "app.two"), ("low", "app.one")):
        counts.add(queue, task, "done", "done")
    shared.begin_counts(counts.dump(), b"")
    shared.confirm_counts()
    crash_recovery.add(shared, crashed=[])
    redis.answer_once(b"-LOADING for a while\r\n")
    between_queues = [mock.DEFAULT, mock.DEFAULT, BrokerUnavailable("away"), mock.DEFAULT]
    monkeypatch.setattr(broker, "settle", mock.Mock(wraps=broker.settle, side_effect=between_queues))
    for _ in range(2):
        with pytest.raises(BrokerUnavailable):
            crash_recovery.tick()
    crash_recovery.tick()
    crash_recovery.tick()

    assert counters(redis) == {"done app.one": 2, "done app.two": 2}
    assert counters(redis, "low") == {"done app.one": 2}


@needs("console")
@pytest.mark.parametrize("has_arrived", [False, True])
def test_what_was_on_its_way_when_the_process_was_killed_is_counted_once(
    redis, broker, crash_recovery, shared, has_arrived
):
    """Redis had the outcome, and the count of it was not sent; or it had neither."""
    job = claimed_job(broker, body=body("app.one"))
    shared.start_batch([job.id.encode()])
    shared.start(0)
    shared.finish_without_result(0)
    counts = make_metrics()
    counts.add(QUEUE, "app.one", "done")
    shared.begin_counts(counts.dump(), job.id.encode())
    if has_arrived:
        broker.settle(WORKER, QUEUE, Settlement(ack=[job.id, 1000, ""]))
    crash_recovery.add(shared, crashed=[])
    crash_recovery.tick()

    assert counters(redis) == {"done app.one": 1}


def counters(redis, queue=QUEUE):
    """What is counted of tasks, but for sums of times."""
    (key,) = redis.keys(f"{{rtq:{queue}}}:tasks:*")
    found = {name.decode(): int(value) for name, value in redis.hgetall(key).items()}
    return {name: value for name, value in found.items() if value}
