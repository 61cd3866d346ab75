"""JobHandle returns the state of its job in every state, and its result when it is over."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from django_rtq import JobHandle, JobState, task
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.exceptions import BrokerUnavailable, JobFailed, JobNotFound, ResultTimeout, WrongState
from tests.support.apps import needs, readers_of
from tests.support.jobs import QUEUE, claim, let_fall_due, settle, settlement
from tests.support.redis_server import UNREACHABLE
from tests.support.single_steps import promote
from tests.support.waiting import PATIENCE, start_thread, wait_until

TASK = "tests.core.test_handle.add"


@task
def add(a, b=2):
    return a + b


def outcome(result):
    """What a worker keeps of a job that succeeded."""
    return json.dumps({"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": result})


def finished(broker, **details):
    """A handle of a job that has succeeded."""
    handle = add.delay(1)
    run(broker, handle, **details)
    return handle


def test_a_job_may_end_while_the_server_is_told_scripts(redis, broker, monkeypatch):
    handle = add.delay(1)
    claim(broker)
    redis.script_flush()
    handle.refresh()  # one of two scripts is known again
    exchange = RedisClient._exchange

    def ends(self, commands, **options):
        if name_of(commands[0]).startswith("SCRIPT"):
            monkeypatch.undo()
            settle(broker, "ack", handle, worker="w2", outcome=outcome(3))
        return exchange(self, commands, **options)

    monkeypatch.setattr(RedisClient, "_exchange", ends)
    assert handle.get(PATIENCE) == 3


def test_a_handle_knows_the_state_through_a_whole_life(broker, readers):
    handle = add.using(run_after=3600).delay(1)
    assert handle.state is JobState.SCHEDULED

    let_fall_due(broker, handle)
    promote(broker, QUEUE)
    assert handle.state is JobState.QUEUED

    claim(broker)
    assert handle.state is JobState.RUNNING

    settle(broker, "retry", handle, worker="w2")
    assert handle.state is JobState.RETRYING

    let_fall_due(broker, handle)
    promote(broker, QUEUE)
    claim(broker)
    settle(broker, "bury", handle, worker="w2")
    assert handle.state is JobState.DEAD

    readers.actions.done("requeue", QUEUE, [handle.id])
    assert handle.state is JobState.QUEUED

    claim(broker)
    settle(broker, "ack", handle, worker="w2", outcome=outcome(3))
    assert (handle.state, handle.result) == (JobState.SUCCEEDED, 3)


# -- result


def test_a_result_is_remembered_and_redis_is_not_asked_again(broker):
    handle = finished(broker, outcome=outcome(3))
    assert handle.get() == 3

    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert (handle.get(), handle.result, handle.state) == (3, 3, JobState.SUCCEEDED)
        with pytest.raises(BrokerUnavailable):
            handle.refresh()


def test_there_is_no_result_of_a_job_that_is_not_done(broker):
    handle = add.delay(1)

    with pytest.raises(WrongState) as caught:
        _ = handle.result

    assert str(caught.value) == f"Job {handle.id} has no result: it is queued."


def test_there_is_no_result_where_none_is_kept(broker):
    handle = finished(broker, outcome="")

    assert (handle.state, handle.get()) == (JobState.SUCCEEDED, None)
    handle = JobHandle(handle.id, QUEUE)
    with pytest.raises(WrongState) as caught:
        _ = handle.result
    assert str(caught.value) == (
        f"Job {handle.id} has no result: it succeeded, but its task stores none (result_ttl=0)."
    )


# -- cancel


@pytest.mark.parametrize("options", [{}, {"run_after": 3600}])
def test_a_cancelled_job_never_runs(broker, options):
    handle = add.using(**options).delay(1)

    handle.cancel()

    assert handle.state is JobState.CANCELLED
    assert claim(broker) == []
    with pytest.raises(WrongState) as caught:
        _ = handle.result
    assert str(caught.value) == f"Job {handle.id} has no result: it is cancelled."


@pytest.mark.parametrize("is_running", [False, True])
def test_a_job_in_another_queue_is_cancelled_where_it_is(broker, is_running):
    handle = JobHandle(add.using(queue_name="low").delay(1).id, QUEUE)
    if is_running:
        assert claim(broker, queues=["low"]) == [handle.id]

    assert handle.cancel() == ("asked" if is_running else "cancelled")

    assert handle.state is (JobState.RUNNING if is_running else JobState.CANCELLED)
    assert claim(broker, queues=["low"]) == []


# -- a job that is not there


@pytest.mark.parametrize("ask", [lambda h: h.state, lambda h: h.result, JobHandle.refresh, JobHandle.cancel])
def test_a_job_that_is_forgotten_or_never_was_is_not_found(broker, ask):
    with pytest.raises(JobNotFound) as caught:
        ask(JobHandle("0" * 32, QUEUE))

    assert str(caught.value) == f"Job {'0' * 32} was not found: its id is unknown, or its result has expired."


def test_a_handle_finds_a_job_that_is_in_another_queue(broker):
    handle = add.using(queue_name="bulk").delay(1)

    assert JobHandle(handle.id, "bulk").state is JobState.QUEUED
    assert JobHandle(handle.id, QUEUE).refresh().queue == "bulk"


def test_handles_of_one_job_are_equal():
    handle = JobHandle("a1", "mail")

    assert handle == JobHandle("a1", "mail")
    assert len({handle, JobHandle("a1", "mail"), JobHandle("a1", "bulk"), JobHandle("a2", "mail")}) == 3
    assert handle != "a1"
    assert repr(handle) == "<JobHandle a1 in mail>"


@needs("workflows")
@pytest.mark.parametrize("job_id", [None, 7, b"7", "\ud800"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda handle: handle.state,
        lambda handle: handle.get(timeout=1),
        lambda handle: async_to_sync(handle.aget)(timeout=1),
        lambda handle: handle.cancel(),
        lambda handle: handle.send("approved"),
        lambda handle: readers_of().find_with_position(handle.id),
        lambda handle: readers_of().actions.run_now(handle.id),
    ],
)
def test_what_is_no_id_is_not_found(redis, broker, job_id, ask):
    handle = JobHandle(job_id, QUEUE)

    with pytest.raises(JobNotFound, match="was not found" if isinstance(job_id, str) else "an id is text, and this is"):
        ask(handle)


# -- get(): the result of a job, or why there is none


def run(broker, handle, verb="ack", **details):
    claim(broker)
    assert settle(broker, verb, handle, worker="w2", **details) == []


@pytest.fixture
def later(redis):
    """Do something when somebody waits."""
    threads = []

    def start(action):
        def wait_and_act():
            wait_until(lambda: any(client["cmd"] in ("blmove", "blpop") for client in redis.client_list()))
            action()

        threads.append(start_thread(wait_and_act))

    yield start
    for thread in threads:
        thread.join()


def test_a_job_that_will_be_over(broker, later):
    handle = add.delay(1)
    later(lambda: run(broker, handle, outcome=outcome([1, None])))

    assert handle.get(PATIENCE) == [1, None]
    assert handle.state is JobState.SUCCEEDED


FAILURE = json.dumps({"error_class": "ValueError", "error": "no", "traceback": "Traceback: here"})


@pytest.mark.parametrize(
    ("verb", "details", "told"),
    [
        ("bury", {}, "is dead. it broke"),
        ("bury", {"error": FAILURE}, "is dead. ValueError: no\n\nTraceback: here"),
        ("bury", {"error": '{"error": "no", "traceback": 7}'}, "is dead. no\n\n7"),
        ("expire", {"outcome": '{"state":"expired"}'}, "is expired."),
    ],
)
def test_a_job_that_has_failed_tells_of_its_last_failure(broker, later, verb, details, told):
    handle = add.delay(1)
    later(lambda: run(broker, handle, verb, **details))

    with pytest.raises(JobFailed) as caught:
        handle.get(PATIENCE)

    assert str(caught.value) == f"Job {handle.id} {told}"
    assert caught.value.job_id == handle.id


def test_a_cancelled_job_has_failed(broker, later):
    handle = add.delay(1)
    later(handle.cancel)

    with pytest.raises(JobFailed, match=r" is cancelled\.$"):
        handle.get(PATIENCE)


def test_a_job_that_is_thrown_away_is_not_found(broker, readers, later):
    handle = add.delay(1)
    later(lambda: readers.sweeps.purge_some(QUEUE, None))

    with pytest.raises(JobNotFound):
        handle.get(PATIENCE)


def test_a_job_that_is_requeued_at_once_has_failed_all_the_same(broker, monkeypatch, access):
    handle = add.delay(1)
    monkeypatch.setattr(JobAccess, "wait", lambda access, job_id, queue, timeout: access.find(job_id, queue))

    with pytest.raises(JobFailed, match="was dead and has been requeued since: it is queued now"):
        handle.get()


@needs("console")
@pytest.mark.parametrize("timeout", [0, 0.1])
def test_it_took_too_long(broker, timeout):
    handle = add.delay(1)

    with pytest.raises(ResultTimeout) as caught:
        handle.get(timeout)

    assert isinstance(caught.value, TimeoutError)
    told = f"Job {handle.id} is not over after {timeout:g} s"
    place = ": it is queued in default. No worker serves this queue." if timeout else "."
    assert str(caught.value) == f"{told}{place}"
    assert handle.state is JobState.QUEUED


def test_redis_away():
    with override_settings(RTQ={"REDIS": UNREACHABLE}), pytest.raises(BrokerUnavailable):
        JobHandle("any", QUEUE).get(5)


@pytest.mark.parametrize("timeout", ["5", float("nan"), float("inf"), timedelta(seconds=1)])
def test_what_is_no_number_of_seconds_is_refused_in_words(timeout):
    with pytest.raises(ValueError, match="has to be a number of seconds, or None to wait without a limit"):
        JobHandle("any", QUEUE).get(timeout)


def elsewhere():
    """A handle that names the queue where its job was before."""
    return JobHandle(add.using(queue_name="bulk").delay(1).id, QUEUE)


def end_elsewhere(broker, handle):
    """Let a job succeed in another queue."""
    assert claim(broker, queues=["bulk"]) == [handle.id]
    broker.settle("w2", "bulk", settlement("ack", handle, outcome=outcome(3)))


def test_a_job_in_another_queue_is_awaited_there(broker, later):
    handle = elsewhere()
    later(lambda: end_elsewhere(broker, handle))

    assert handle.get(PATIENCE) == 3


def test_the_result_of_a_job_that_has_ended_in_another_queue(broker):
    handle = elsewhere()
    end_elsewhere(broker, handle)

    assert handle.get() == handle.result == 3
