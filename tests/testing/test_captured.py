"""captured() collects jobs in place of Redis, and compares them with what a test expects."""

from datetime import datetime, timedelta, timezone

import pytest
from django.test import override_settings

from django_rtq import JobState
from django_rtq.console.reading.readers import Readers
from django_rtq.core.broker.brokers import get_broker
from django_rtq.exceptions import (
    DuplicateJob,
    InvalidTask,
    JobFailed,
    PayloadTooLarge,
    RedisNotAllowed,
    Unserializable,
    WrongState,
)
from django_rtq.testing import captured
from tests.support.redis_server import UNREACHABLE
from tests.testing.tasks import charge, describe, once, send_mail

TOMORROW = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(days=1)


@pytest.fixture
def jobs():
    with captured() as jobs:
        yield jobs


def test_jobs_are_collected_in_order_and_do_not_run(jobs, ran):
    handle = charge.delay(5, shop="north")
    send_mail.delay_many([(("a",), {}), ([], {"to": "b"})])

    assert len(jobs) == 3
    assert [job.task.rpartition(".")[2] for job in jobs] == ["charge", "send_mail", "send_mail"]
    assert (jobs[0].id, jobs[0].queue, jobs[0].client) == (handle.id, "default", "north")
    assert [job.kwargs for job in jobs[1:]] == [{}, {"to": "b"}]
    assert ran == []


def test_jobs_stay_readable_after_the_block_and_the_next_block_begins_anew():
    jobs = captured()
    with jobs:
        send_mail.delay("a")
    assert len(jobs) == 1
    with jobs:
        assert not jobs


def test_options_of_the_call_can_be_read(jobs):
    charge.using(queue_name="slow", priority=5, run_after=60, expires=TOMORROW, max_attempts=2).delay(1)

    (job,) = jobs
    assert (job.queue, job.priority, job.run_after, job.expires) == ("slow", 5, timedelta(minutes=1), TOMORROW)
    assert (job.at_front, job.options, job.state) == (False, {"max_attempts": 2}, JobState.SCHEDULED)


def test_settings_may_be_overridden_inside(jobs):
    with override_settings(RTQ={"REDIS": UNREACHABLE, "DEFAULT_QUEUE": "other"}):
        charge.delay(1)

    jobs.assert_enqueued(charge, queue="other")


# -- what is checked as in production


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (charge.delay, TypeError),
        (lambda: charge.delay(object()), Unserializable),
        (lambda: charge.delay("x" * 2_000_000), PayloadTooLarge),
        (lambda: charge.using(run_after=datetime(2030, 1, 1)).delay(1), InvalidTask),
        (lambda: charge.delay(1, shop=b"x"), Unserializable),
        (lambda: charge.delay(1, shop="x" * 300), InvalidTask),
    ],
)
def test_invalid_calls_are_refused_as_in_production(jobs, call, error):
    with pytest.raises(error):
        call()
    assert not jobs


# -- assertions


def test_a_call_is_compared_by_names_and_defaults(jobs):
    charge.delay(5)

    for expected in ({"args": (5,)}, {"kwargs": {"order": 5}}, {"args": [5], "kwargs": {"shop": "", "amounts": ()}}):
        assert jobs.assert_enqueued(charge, **expected) == [jobs[0]]
    jobs.assert_not_enqueued(charge, args=(6,))
    jobs.assert_not_enqueued(charge, args=(5,), kwargs={"shop": "north"})
    describe.delay("a")  # its context is no argument
    jobs.assert_enqueued(describe, args=("a",))


@pytest.mark.parametrize("delay", [timedelta(hours=1), 3600, 3600.0])
def test_delays_are_compared_however_they_are_written(jobs, delay):
    send_mail.using(run_after=timedelta(minutes=60)).delay("a")

    jobs.assert_enqueued(send_mail, run_after=delay)
    jobs.assert_not_enqueued(send_mail, run_after=None)
    jobs.assert_not_enqueued(send_mail, run_after=60)


def test_moments_are_compared(jobs):
    send_mail.using(run_after=TOMORROW).delay("a")

    jobs.assert_enqueued(send_mail, run_after=TOMORROW)
    jobs.assert_not_enqueued(send_mail, run_after=TOMORROW + timedelta(seconds=1))


def test_clients_queues_and_numbers_are_compared(jobs):
    charge.delay(1, shop="7")
    charge.using(queue_name="slow").delay(1, shop="8")

    jobs.assert_enqueued(charge, client=7, queue="default", times=1)
    jobs.assert_enqueued(charge.using(priority=3), times=2)
    jobs.assert_enqueued("tests.testing.tasks.charge", client="8", queue="slow", times=1)
    jobs.assert_enqueued(send_mail, times=0)
    jobs.assert_not_enqueued(client="9")
    jobs.assert_not_enqueued(send_mail)


def test_a_task_that_is_not_known_is_compared_as_written(jobs):
    charge.delay(1)
    jobs.assert_not_enqueued("shop.tasks.gone", args=(1,))


def test_an_assertion_that_does_not_exist_is_an_error(jobs):
    with pytest.raises(AttributeError, match="'CapturedJobs' object has no attribute 'assert_enqueud'"):
        jobs.assert_enqueud(charge)


def test_a_failure_prints_what_was_enqueued(jobs):
    charge.delay(5, shop="north")
    send_mail.using(run_after=3600).delay("a").cancel()

    with pytest.raises(AssertionError) as caught:
        jobs.assert_enqueued(charge, args=(6,), client="south", run_after=60)
    assert str(caught.value) == (
        "tests.testing.tasks.charge(6) with client 'south', run_after datetime.timedelta(seconds=60) was not enqueued. "
        "Enqueued were:\n"
        "  1. tests.testing.tasks.charge(5, shop='north') in queue 'default', client 'north'\n"
        "  2. tests.testing.tasks.send_mail('a') in queue 'mail', run_after 1:00:00, cancelled"
    )


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda jobs: jobs.assert_enqueued(charge), "tests.testing.tasks.charge was not enqueued. Enqueued were:"),
        (lambda jobs: jobs.assert_enqueued(send_mail, times=2), "send_mail was enqueued once, not 2 times. Enqueued"),
        (lambda jobs: jobs.assert_not_enqueued(send_mail), "tests.testing.tasks.send_mail was enqueued. Enqueued were"),
        (lambda jobs: jobs.assert_not_enqueued(), "A job was enqueued. Enqueued were:"),
    ],
)
def test_each_assertion_says_what_was_wrong(jobs, check, message):
    send_mail.delay("a")
    with pytest.raises(AssertionError) as caught:
        check(jobs)
    assert message in str(caught.value)


def test_nothing_at_all_is_said_as_such(jobs):
    with pytest.raises(AssertionError, match=r"charge was not enqueued\. No job was enqueued\.$"):
        jobs.assert_enqueued(charge)
    jobs.assert_not_enqueued()


@pytest.mark.parametrize("expected", [{"args": (1, 2, 3)}, {"kwargs": {"ordr": 1}}, {"arg": (1,)}])
def test_a_wrong_expectation_is_an_error_and_not_a_difference(jobs, expected):
    charge.delay(1)
    with pytest.raises(TypeError):
        jobs.assert_enqueued(charge, **expected)
    with pytest.raises(TypeError):
        jobs.assert_not_enqueued(charge, **expected)


def test_arguments_need_a_task(jobs):
    with pytest.raises(TypeError, match="name it"):
        jobs.assert_not_enqueued(args=(1,))


# -- unique jobs


def test_of_unique_jobs_that_are_alike_one_exists(jobs):
    first, again = once.delay("a", 1), once.delay("a", 2)
    once.delay("b")

    assert (again.id, again.duplicate) == (first.id, True)
    assert [job.args for job in jobs] == [["a", 1], ["b"]]


def test_conflicts_are_resolved_as_in_production(jobs):
    first = once.delay("a", 1)
    with pytest.raises(DuplicateJob):
        once.using(unique_on_conflict="raise").delay("a", 2)
    once.using(unique_on_conflict="rerun").delay("a", 2)
    assert jobs[0].args == ["a", 1]
    once.using(unique_on_conflict="replace", run_after=60).delay("a", 3)

    (job,) = jobs
    assert (job.id, job.args, job.run_after) == (first.id, ["a", 3], timedelta(minutes=1))


def test_a_cancelled_unique_job_makes_room(jobs):
    once.delay("a").cancel()
    once.delay("a")
    assert len(jobs) == 2


def test_a_call_that_is_not_unique_after_all_is_no_duplicate(jobs):
    not_unique = once.using(unique=lambda key, value: None)
    not_unique.delay("a")
    not_unique.delay("a")
    assert len(jobs) == 2


# -- handles


def test_handles_know_their_jobs(jobs):
    handle, delayed = charge.delay(1, shop="north"), send_mail.using(run_after=60).delay("a")

    assert (handle.state, delayed.state) == (JobState.QUEUED, JobState.SCHEDULED)
    details = handle.refresh()
    assert (details.task, details.client, details.args) == ("tests.testing.tasks.charge", "north", [1])
    assert delayed.cancel() == "cancelled"
    assert delayed.state is JobState.CANCELLED
    with pytest.raises(JobFailed):
        delayed.get()


def test_waiting_for_a_captured_job_is_refused_and_not_endless(jobs):
    handle = charge.delay(1)
    with pytest.raises(WrongState, match="never runs"):
        handle.get(timeout=10)
    with pytest.raises(WrongState):
        _ = handle.result


def test_what_else_needs_redis_is_refused_with_the_way_out(jobs):
    with pytest.raises(RedisNotAllowed, match=r"captured\(\) is active.*drain\(\)"):
        get_broker().queue_names()
    with pytest.raises(RedisNotAllowed):
        Readers(get_broker())
