"""drain() runs jobs from Redis in the calling thread, through the code of a worker."""

import asyncio
import signal
import sys
from datetime import datetime, timedelta, timezone

import pytest
from django.core.management import call_command

from django_rtq import Bury, JobState, current_job, task
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.tasks import registry
from django_rtq.exceptions import TaskNotFound, TimeLimitExceeded
from django_rtq.testing import adrain, drain, private_redis
from django_rtq.testing.drain import Drain
from tests.testing import tasks
from tests.testing.tasks import charge, describe, fetch, flaky, give_up, send_mail
from tests.testing.test_eager import aslow, slow


@pytest.fixture(params=["fakeredis", "server"])
def redis_of_test(request):
    """An empty Redis, of each kind."""
    if request.param == "fakeredis":
        pytest.importorskip("fakeredis")
        pytest.importorskip("lupa")
        with private_redis():
            yield
    else:
        with private_redis(request.getfixturevalue("redis").proxy.url):
            yield


pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.usefixtures("redis_of_test")]


def test_jobs_wait_until_they_are_drained(ran):
    handle = charge.delay(5, shop="north", amounts=(1,))
    assert (handle.state, ran) == (JobState.QUEUED, [])

    (run,) = drain()
    assert (run.id, run.state, run.attempt) == (handle.id, JobState.SUCCEEDED, 1)
    assert run.result == handle.result == handle.get(timeout=1) == {"order": 5, "amounts": [1]}
    assert drain() == []


def test_turns_priorities_and_jobs_of_jobs_are_as_in_a_worker(ran):
    charge.delay(1, shop="a")
    charge.delay(2, shop="a")
    charge.delay(3, shop="b")
    charge.using(priority=5).delay(4, shop="c")
    begets.delay("child")
    drain()
    assert [entry[1] for entry in ran] == [4, 1, 3, 2, "child"]


@task(client="z")
def begets(name):
    send_mail.delay(name)
    return "begot"


def test_coroutines_run_too(ran):
    fetch.delay("x")
    assert [run.result for run in drain()] == ["x!"]

    async def call():
        handle = await fetch.adelay("y")
        await adrain()
        return await handle.aget(timeout=1)

    assert asyncio.run(call()) == "y!"


def test_a_coroutine_that_cannot_run_stays_queued(ran):
    handle = fetch.delay("x")

    async def call():
        drain()

    with pytest.raises(RuntimeError, match="await adrain"):
        asyncio.run(call())
    assert handle.state is JobState.QUEUED
    assert readers_of().workers() == []
    drain()
    assert handle.result == "x!"


def test_retries_are_those_of_the_call(ran):
    job = flaky.using(max_attempts=2, backoff=7).delay(5)
    assert job.refresh().options == {"max_attempts": 2, "backoff": 7}
    assert [run.state for run in drain(raise_errors=False)] == ["retrying"]
    assert drain(until=6) == []
    assert [run.state for run in drain(until=1, raise_errors=False)] == ["dead"]


def test_only_named_queues_are_drained(ran):
    send_mail.delay("a")
    charge.delay(1)
    assert [run.queue for run in drain(["mail"])] == ["mail"]
    assert [run.queue for run in drain()] == ["default"]


def test_a_paused_queue_is_not_drained(ran):
    handle = send_mail.delay("a")
    call_command("rtq_queues", "pause", "mail", verbosity=0)
    assert drain() == []
    assert handle.state is JobState.QUEUED
    call_command("rtq_queues", "resume", "mail", verbosity=0)
    assert len(drain()) == 1


def test_jobs_of_a_paused_task_are_not_drained(ran):
    handle, other = send_mail.delay("a"), describe.delay("b")
    call_command("rtq_tasks", "pause", "*", send_mail.name, verbosity=0)
    assert [run.id for run in drain(until=timedelta(days=365))] == [other.id]
    assert handle.state is JobState.SCHEDULED
    call_command("rtq_tasks", "resume", "*", send_mail.name, verbosity=0)
    assert [run.id for run in drain()] == [handle.id]


# -- time


def test_delayed_jobs_wait_for_their_time(ran):
    handle = send_mail.using(run_after=timedelta(hours=2)).delay("a")
    assert drain() == drain(until=timedelta(hours=1)) == []
    assert handle.state is JobState.SCHEDULED

    assert len(drain(until=timedelta(hours=1))) == 1, "the time stays moved"
    assert handle.state is JobState.SUCCEEDED


def test_time_moves_to_a_moment_and_jobs_run_in_their_order(ran):
    now = datetime.now(timezone.utc)
    for hours in (3, 1, 2, 5):
        send_mail.using(run_after=now + timedelta(hours=hours)).delay(str(hours))
    drain(until=now + timedelta(hours=4))
    assert [to for _, to in ran] == ["1", "2", "3"]


def test_what_a_delayed_job_delays_counts_from_its_time(ran):
    chain.using(run_after=3600).delay(3)
    drain(until=timedelta(hours=2, seconds=30))
    assert ran == [("chain", 3), ("chain", 2)]
    drain(until=3600)
    assert ran[2:] == [("chain", 1)]


@task
def chain(left):
    tasks.ran.append(("chain", left))
    if left > 1:
        chain.using(run_after=3600).delay(left - 1)


def test_delayed_jobs_of_several_clients_come_by_their_time(ran):
    for number, shop in enumerate("abcab"):
        charge.using(run_after=60 + number).delay(number, shop=shop)
    drain(until=120)
    assert [entry[1] for entry in ran] == [0, 1, 2, 3, 4]


# -- failures


def test_a_failed_job_raises_at_the_end(ran):
    handle = flaky.delay(1)
    send_mail.delay("a")
    with pytest.raises(ConnectionError, match="attempt 1"):
        drain()
    assert handle.state is JobState.RETRYING
    assert ("send_mail", "a") in ran


def test_a_job_that_succeeds_later_does_not_raise(ran):
    handle = flaky.delay(2)
    runs = drain(until=120)
    assert [(run.attempt, run.state) for run in runs] == [
        (1, JobState.RETRYING),
        (2, JobState.RETRYING),
        (3, JobState.SUCCEEDED),
    ]
    assert handle.result == 3


def test_a_retry_without_a_delay_is_due_and_one_with_a_short_delay_is_not(ran):
    flaky_at_once.delay()
    assert [run.attempt for run in drain()] == [1, 2]
    flaky_soon.delay()
    send_mail.delay("takes longer than the delay")
    assert [run.attempt for run in drain(raise_errors=False)] == [1, 1]
    assert [run.attempt for run in drain()] == [2]


@task(backoff=0)
def flaky_at_once():
    if current_job().attempt == 1:
        raise ConnectionError


@task(backoff=0.001)
def flaky_soon():
    if current_job().attempt == 1:
        raise ConnectionError


def test_dead_letters_are_reported_or_raised():
    handle = give_up.delay("no use")
    (run,) = drain(raise_errors=False)
    assert (run.state, handle.state) == (JobState.DEAD, JobState.DEAD)
    assert isinstance(run.error, Bury)
    assert readers_of().actions.done("requeue", "default", [handle.id]) == [handle.id]
    with pytest.raises(Bury, match="no use"):
        drain()


def test_a_task_that_is_not_registered_is_an_error(monkeypatch):
    send_mail.delay("a")
    monkeypatch.delitem(registry._tasks, send_mail.name)
    with pytest.raises(TaskNotFound):
        drain()


def test_ctrl_c_ends_it_and_leaves_no_job_with_a_worker(ran):
    handles = [interrupts.delay(), send_mail.delay("a")]
    with pytest.raises(KeyboardInterrupt):
        drain(["default", "mail"])
    assert [handle.state for handle in handles] == [JobState.RETRYING, JobState.QUEUED]
    assert readers_of().workers() == []


@task
def interrupts():
    raise KeyboardInterrupt


def test_a_job_that_enqueues_itself_for_ever_is_stopped(monkeypatch):
    monkeypatch.setattr(sys.modules[Drain.__module__], "MAX_RUNS", 10)
    endless.delay()
    with pytest.raises(RuntimeError, match="has run 10 jobs"):
        drain()


@task
def endless():
    endless.delay()


def test_time_limits_are_enforced_on_request():
    before = signal.getsignal(signal.SIGALRM)
    slow.delay(0.05)
    aslow.delay(0.05)
    drain()
    slow.delay(5)
    aslow.delay(5)
    runs = drain(raise_errors=False, time_limits=True)
    assert [type(run.error) for run in runs] == [TimeLimitExceeded] * 2
    assert signal.getsignal(signal.SIGALRM) is before
