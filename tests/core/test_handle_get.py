"""get(): the result of a job, or why there is none."""

import json
import threading
from datetime import timedelta

import pytest
from django.test import override_settings

from django_rtq import JobHandle, JobState, task
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.exceptions import BrokerUnavailable, JobFailed, JobNotFound, ResultTimeout
from tests.support.apps import needs
from tests.support.jobs import QUEUE, claim, settle, settlement
from tests.support.redis_server import UNREACHABLE
from tests.support.waiting import PATIENCE, wait_until

TASK = f"{__name__}.add"


@task
def add(a, b=2):
    return a + b


def outcome(result):
    return json.dumps({"state": "succeeded", "task": TASK, "attempt": 1, "seconds": 0.5, "result": result})


def run(broker, handle, verb="ack", **details):
    claim(broker)
    assert settle(broker, verb, handle, worker="w2", **details) == []


def is_awaited(redis):
    return any(client["cmd"] in ("blmove", "blpop") for client in redis.client_list())


@pytest.fixture
def later(redis):
    """Do something when somebody waits."""
    threads = []

    def start(action):
        def wait_and_act():
            wait_until(lambda: is_awaited(redis))
            action()

        threads.append(threading.Thread(target=wait_and_act))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def test_a_job_that_will_be_over(broker, later):
    handle = add.delay(1)
    later(lambda: run(broker, handle, outcome=outcome([1, None])))

    assert handle.get(PATIENCE) == [1, None]
    assert handle.state is JobState.SUCCEEDED


def test_a_result_that_was_read_is_not_read_again(broker, redis):
    handle = add.delay(1)
    run(broker, handle, outcome=outcome(3))
    assert handle.get() == 3
    redis.flushdb()

    assert handle.get() == 3


def test_where_no_result_is_kept_it_is_none(broker):
    handle = add.delay(1)
    run(broker, handle, outcome="")

    assert handle.get() is None


def test_a_dead_job_tells_of_its_last_failure(broker, later):
    handle = add.delay(1)
    later(lambda: run(broker, handle, "bury"))

    with pytest.raises(JobFailed) as caught:
        handle.get(PATIENCE)

    assert str(caught.value) == f"Job {handle.id} is dead. it broke"
    assert caught.value.job_id == handle.id


def test_a_failure_has_its_traceback(broker):
    error = json.dumps({"error_class": "ValueError", "error": "no", "traceback": "Traceback: here"})
    handle = add.delay(1)
    run(broker, handle, "bury", error=error)

    with pytest.raises(JobFailed) as caught:
        handle.get()

    assert str(caught.value) == f"Job {handle.id} is dead. ValueError: no\n\nTraceback: here"


def test_a_cancelled_job_has_failed(broker, later):
    handle = add.delay(1)
    later(handle.cancel)

    with pytest.raises(JobFailed, match=r" is cancelled\.$"):
        handle.get(PATIENCE)


def test_an_expired_job_has_failed(broker):
    handle = add.delay(1)
    run(broker, handle, "expire", outcome='{"state":"expired"}')

    with pytest.raises(JobFailed, match=r" is expired\.$"):
        handle.get()


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
