"""eager() runs jobs where they are enqueued, through the code of a worker."""

import asyncio
import time
from datetime import datetime, timedelta, timezone

import pytest
from django.utils import translation

from django_rtq import JobState, current_job, signals, task
from django_rtq.exceptions import Bury, DuplicateJob, JobFailed, Retry, TimeLimitExceeded, Unserializable, WrongState
from django_rtq.testing import eager
from tests.support.jobs import receiving
from tests.support.waiting import start_thread
from tests.testing import tasks
from tests.testing.tasks import charge, describe, fetch, flaky, give_up, later, once, outer, send_mail


@pytest.fixture
def runs():
    with eager() as runs:
        yield runs


def test_delay_runs_the_job_and_the_handle_has_its_result(runs, ran):
    handle = charge.delay(5, shop="north", amounts=(1, 2))

    assert ran == [("charge", 5, "north", [1, 2])]
    assert handle.state is JobState.SUCCEEDED
    assert handle.result == handle.get() == {"order": 5, "amounts": [1, 2]}
    (run,) = runs
    assert (run.id, run.task, run.client, run.attempt) == (handle.id, "tests.testing.tasks.charge", "north", 1)
    assert str(run) == "tests.testing.tasks.charge(5, shop='north', amounts=[1, 2]), attempt 1: succeeded"


def test_the_handle_has_the_result_after_the_block():
    with eager():
        handle = fetch.delay("x")
    assert (handle.state, handle.result, handle.get()) == (JobState.SUCCEEDED, "x!", "x!")


def test_a_result_that_is_no_json_fails_as_in_a_worker(runs):
    with pytest.raises(Unserializable, match="the result of"):
        returns_an_object.delay()
    assert runs[0].state is JobState.DEAD


@task
def returns_an_object():
    return object()


def test_a_job_knows_itself_and_nested_jobs_do_not_disturb_it(runs, ran):
    assert describe.using(queue_name="slow").delay("a").result == ["a", True, 1, "slow", ""]
    assert outer.delay("b").result == [True, ["b", True, 1, "default", ""]]

    assert ran[1:] == [("begin", "b"), ("describe", "b"), ("end", "b")]
    assert [run.task.rpartition(".")[2] for run in runs] == ["describe", "describe", "outer"]
    assert current_job() is None


def test_delay_many_and_delayed_jobs_run_at_once(runs, ran):
    send_mail.delay_many([(("a",), {}), (("b",), {})])
    send_mail.using(run_after=timedelta(days=3)).delay("c")
    assert ran == [("send_mail", name) for name in "abc"]


def test_an_expired_job_does_not_run(runs, ran):
    past = datetime.now(timezone.utc) - timedelta(hours=1)
    handle = send_mail.using(expires=past).delay("a")
    send_mail.using(expires=60).delay("b")
    assert (handle.state, ran) == (JobState.EXPIRED, [("send_mail", "b")])


# -- failures


def test_delay_raises_what_the_job_raised(runs):
    for call, error in ((flaky, ConnectionError), (give_up, Bury), (later, Retry)):
        with pytest.raises(error):
            call.delay(1)
    assert [run.state for run in runs] == [JobState.RETRYING, JobState.DEAD, JobState.RETRYING]


def test_without_propagation_the_handle_tells():
    with eager(propagate=False) as runs:
        handle, dead = flaky.delay(1), give_up.delay("it is broken")
        assert (handle.state, dead.state) == (JobState.RETRYING, JobState.DEAD)
        with pytest.raises(WrongState, match="retries=True"):
            handle.get()
        with pytest.raises(JobFailed, match=r"(?s)it is broken.*raise Bury"):
            dead.get()
        with pytest.raises(WrongState):
            dead.cancel()
    assert isinstance(runs[0].error, ConnectionError)
    assert "ConnectionError: attempt 1" in str(runs[0])


@pytest.mark.parametrize(("failures", "states"), [(2, "retrying retrying succeeded"), (9, "retrying retrying dead")])
def test_with_retries_a_job_runs_until_it_succeeds_or_is_dead(failures, states):
    with eager(retries=True, propagate=False) as runs:
        handle = flaky.delay(failures)
        assert handle.refresh().attempt == 3
        assert [failure["attempt"] for failure in handle.refresh().errors] == [1, 2, 3][: 3 - states.endswith("ed")]
    assert " ".join(run.state for run in runs) == states
    assert [run.attempt for run in runs] == [1, 2, 3]


def test_with_retries_the_last_error_is_raised():
    with eager(retries=True), pytest.raises(ConnectionError, match="attempt 3"):
        flaky.delay(9)


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.skip.Exception])
def test_ctrl_c_and_outcomes_of_pytest_are_no_failures_of_jobs(error):
    with eager(retries=True, propagate=False), pytest.raises(error):
        raises.delay(error.__name__)


@task
def raises(name):
    raise {"KeyboardInterrupt": KeyboardInterrupt, "Skipped": pytest.skip.Exception}[name]


def test_a_job_that_enqueues_itself_is_stopped():
    with eager(retries=True, propagate=False), pytest.raises(RecursionError, match=r"use captured|captured\(\)"):
        again.delay(0)


@task
def again(number):
    again.using(run_after=60).delay(number + 1)


def test_time_limits_are_enforced_on_request(runs):
    slow.delay(0.05)
    with eager(time_limits=True):
        with pytest.raises(TimeLimitExceeded):
            slow.delay(5)
        with pytest.raises(TimeLimitExceeded):
            aslow.delay(5)
        slow.using(time_limit=20).delay(0)
        in_thread = []
        start_thread(lambda: in_thread.append(slow.using(time_limit=20).delay(0).state)).join()
        assert in_thread == [JobState.SUCCEEDED]


@task(time_limit=0.02)
def slow(seconds):
    time.sleep(seconds)


@task(time_limit=0.02)
async def aslow(seconds):
    await asyncio.sleep(seconds)


# -- coroutines


def test_both_kinds_run_from_an_event_loop(runs, ran):
    async def call():
        job = await fetch.adelay("x")
        other = await describe.adelay("y")
        assert current_job() is None
        return await job.aget(), other.state

    assert asyncio.run(call()) == ("x!", JobState.SUCCEEDED)
    assert [name for name, *_ in ran] == ["fetch", "describe"]


def test_a_coroutine_cannot_run_while_the_loop_is_blocked(runs, ran):
    async def call():
        send_mail.delay("a")
        fetch.delay("x")

    with pytest.raises(RuntimeError, match="await adelay"):
        asyncio.run(call())
    assert ran == [("send_mail", "a")]


# -- unique jobs


def test_unique_jobs_that_ran_make_room(runs, ran):
    assert once.delay("a").id != once.delay("a").id
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("conflict", "numbers"), [("return", [0]), ("replace", [0]), ("rerun", [0, 2]), ("raise", [0])]
)
def test_a_running_unique_job_is_in_the_way_of_its_like(runs, ran, conflict, numbers):
    if conflict == "raise":
        with pytest.raises(DuplicateJob):
            digs.delay("a", 0, conflict)
    else:
        digs.delay("a", 0, conflict)
    assert [number for _, number in ran] == numbers


def test_a_job_that_is_unique_until_its_start_is_not_in_the_way(runs, ran):
    starts.delay("a", 0)
    assert [number for _, number in ran] == [0, 1]


@task(unique=["key"])
def digs(key, number, conflict):
    tasks.ran.append((key, number))
    if number == 0:
        for next_number in (1, 2):
            assert digs.using(unique_on_conflict=conflict).delay(key, next_number, conflict).duplicate


@task(unique=["key"], unique_until="start")
def starts(key, number):
    tasks.ran.append((key, number))
    if number == 0:
        starts.delay(key, 1)


# -- signals and context


def test_the_signals_of_a_worker_are_sent(runs):
    seen = []
    names = ["job_enqueued", "job_started", "job_succeeded", "job_retried", "job_buried"]
    by_signal = {getattr(signals, name): name for name in names}

    def note(signal, **details):
        seen.append((by_signal[signal], details.get("job") and details["job"].args))

    with receiving(note, *by_signal):
        send_mail.delay("a")
        with pytest.raises(Bury):
            give_up.delay("b")
    assert seen == [
        ("job_started", ["a"]),
        ("job_succeeded", ["a"]),
        ("job_enqueued", None),
        ("job_started", ["b"]),
        ("job_buried", ["b"]),
    ]


def test_a_job_does_not_see_the_language_of_its_caller(runs):
    with translation.override("de"):
        assert language.delay().result == "en"
        assert alanguage.delay().result == "en"


@task
def language():
    return translation.get_language()


@task
async def alanguage():
    return translation.get_language()
