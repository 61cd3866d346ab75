"""Options of tasks and of calls: what they do, and which values are refused."""

import enum
import math
from datetime import date, datetime, timedelta, timezone

import pytest
from django.test import override_settings
from django.utils.translation import gettext_lazy

from django_rtq import constant, exponential, task
from django_rtq.core.jobs.job import Job
from django_rtq.core.tasks.options.backoff import DEFAULT
from django_rtq.core.tasks.options.kinds import moment_argument
from django_rtq.core.validation import TEN_YEARS
from tests.core.tasks.refusals import refusal
from tests.support.apps import needs
from tests.support.jobs import QUEUE, take, take_all

HOUR = timedelta(hours=1)
UTC = timezone.utc
HUGE = 10**400
NAME = "tests.core.tasks.options.test_values.send"


class Line(str, enum.Enum):
    MAIL = "mail"


def send(account_id, invoice_id=0):
    return account_id, invoice_id


@task
def plain(a=0, b=0):
    return a, b


@task(
    queue_name="mail",
    client="acme",
    priority=7,
    max_attempts=2,
    max_crashes=0,
    time_limit=60,
    expires=HOUR,
    at_front=True,
    result_ttl=0,
)
def full(number):
    return number


# -- refused where they are written


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        *(({"priority": v}, "a whole number from -100 to 100") for v in (-101, 101, 1.0, True, "1", None, HUGE)),
        *(({"max_attempts": v}, "a whole number, 1 or more") for v in (0, -1, 2.0, True, "5", math.inf)),
        *(({"max_crashes": v}, "a whole number, 0 or more") for v in (-1, 2.5, False, "0", -HUGE)),
        *(
            ({"time_limit": v}, "seconds, more than 0 to ten years")
            for v in (0, -1, math.nan, math.inf, True, "5", HOUR, TEN_YEARS + 1, HUGE)
        ),
        *(({"result_ttl": v}, "seconds, 0 to ten years") for v in (-0.1, math.nan, True, "5", HUGE, -HUGE)),
        *(({"at_front": v}, "True or False") for v in ("no", 1, None)),
        *(({"takes_context": v}, "True or False") for v in ("yes", 0, None)),
        *(
            ({name: v}, "an exception class, or a tuple of them")
            for name in ("retry_on", "give_up_on")
            for v in (None, "ValueError", ValueError(), (ValueError, 5), {ValueError}, int)
        ),
        *(
            ({"expires": v}, "seconds or a timedelta, of at most ten years, or an aware datetime")
            for v in (math.nan, math.inf, -math.inf, True, "5", date(2026, 1, 1), timedelta.max, HUGE)
        ),
        *(({"client": v}, "text, a whole number or a UUID") for v in (1.5, True, b"acme", [7], gettext_lazy("x"))),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_words(options, problem):
    ((name, value),) = options.items()

    assert refusal(task(**options), send) == f"{NAME}: {name} is {value!r}, but has to be {problem}."
    if name not in ("retry_on", "give_up_on", "takes_context"):
        assert refusal(plain.using, **options).endswith(f": {name} is {value!r}, but has to be {problem}.")


@pytest.mark.parametrize("name", ["", None])
def test_no_queue_name_stands_for_that_of_the_settings(broker, name):
    assert plain.using(queue_name=name).delay().queue_name == QUEUE


@pytest.mark.parametrize("name", ["two words", "a:b", "{a}", "ü", "a" * 101, "a\n", 5, b"mail", ["a"], False])
def test_a_bad_queue_name_is_refused(name):
    assert refusal(task(queue_name=name), send) == (
        f"{NAME}: queue_name is {name!r}, but has to be 1 to 100 of the letters A-Z and a-z, digits, '.', '_' and '-'."
    )


@pytest.mark.parametrize("option", ["run_after", "expires"])
def test_a_naive_moment_is_refused_where_the_project_has_time_zones(option):
    moment = datetime(2030, 1, 1)

    assert refusal(plain.using, **{option: moment}) == (
        f"{__name__}.plain: {option} is {moment!r}, a datetime without a time zone, but USE_TZ is on. "
        "Use django.utils.timezone.now() and the like."
    )


@pytest.mark.parametrize("keep_args", ["yes", 1, 0.5])
def test_whether_arguments_are_kept_is_true_or_false(keep_args):
    assert refusal(task(keep_args=keep_args), send).startswith(f"{NAME}: ")
    assert task(keep_args=None)(send).keep_args is None


@pytest.mark.parametrize("backoff", [-1, math.nan, [], "5", constant, exponential, lambda: 1])
def test_a_bad_backoff_is_refused(backoff):
    assert refusal(task(backoff=backoff), send).startswith(f"{NAME}: ")


@needs("compat")
def test_an_option_that_is_not_known_is_refused_with_those_that_are():
    unique = "unique, unique_on_conflict, unique_seconds, unique_until"
    known = "client, expires, max_attempts, max_crashes, on_commit, priority, queue_name, result_ttl"
    of_task = known.replace("expires", "exactly_once, expires, give_up_on, keep_args").replace(
        "on_commit", "name, on_commit"
    )

    assert refusal(task, retires=3) == (
        f"@task does not take 'retires'. Did you mean expires? It takes: aliases, at_front, backoff, batch, "
        f"{of_task}, retry_on, schedule, takes_context, time_limit, {unique}."
    )
    for name in ("func", "changed"):
        assert refusal(plain.using, **{name: 1}) == (
            f"tests.core.tasks.options.test_values.plain: using() does not take {name!r}. "
            f"It takes: at_front, backoff, {known.replace('max_a', 'headers, max_a')}, run_after, time_limit, {unique}."
        )


@needs("compat")
def test_an_option_in_the_wrong_place_is_refused_with_the_right_one():
    assert refusal(task, run_after=3) == "@task does not take 'run_after'. Use .using(run_after=…)."
    assert refusal(task, headers={}) == "@task does not take 'headers'. Use .using(headers=…)."
    for name in ("retry_on", "give_up_on", "takes_context"):
        assert refusal(plain.using, **{name: 1}).endswith(f"using() does not take {name!r}. Use @task({name}=…).")


# -- when, and in which order


def test_a_naive_moment_is_local_time_where_the_project_has_no_time_zones(broker):
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        handle = plain.using(run_after=datetime(2199, 1, 1)).delay()

    assert handle.refresh().due_at == datetime(2198, 12, 31, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "argument"),
    [
        (None, ""),
        (1.5, "+1500"),
        (0.0004, "+0"),
        (-1e308, "+0"),
        (-HUGE, "+0"),
        (timedelta(microseconds=1500), "+2"),
        (TEN_YEARS, "+315360000000"),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "1000"),
        # What a header can hold: no sign, and not 0, which would mean that it never expires.
        (datetime(1970, 1, 1, tzinfo=UTC), "1"),
        (datetime.min.replace(tzinfo=UTC), "1"),
        (datetime.max.replace(tzinfo=UTC), "253402300799999"),
        (datetime(2199, 1, 1, microsecond=1, tzinfo=UTC), "7226582400001"),
    ],
)
def test_moments_are_told_to_scripts_in_milliseconds(value, argument):
    assert moment_argument("a.task", "run_after", value) == argument


def test_expires_is_counted_from_the_time_of_the_job(broker):
    handle = plain.using(run_after=HOUR, expires=60).delay()

    (record,) = broker.redis.execute_one(("HVALS", broker.keys.of(QUEUE).jobs))
    _, _, ready_ms, expires_ms, _ = record.split(b" ", 4)
    assert int(expires_ms) - int(ready_ms) == 60_000
    assert int(ready_ms) == handle.refresh().due_at.timestamp() * 1000


# -- of a task, and of a call


def test_every_option_of_a_task_is_carried_or_known_by_it(broker):
    handle = full.delay(1)

    job = take(broker, queue="mail")
    assert job == Job(
        id=handle.id,
        task="tests.core.tasks.options.test_values.full",
        queue="mail",
        client="acme",
        priority=7,
        args=[1],
        max_crashes=0,
        ready_ms=job.ready_ms,
        expires_ms=job.ready_ms + 3_600_000,
    )
    assert (full.max_attempts, full.time_limit, full.result_ttl) == (2, 60, 0)


def test_what_is_not_said_is_left_to_the_settings():
    assert (plain.queue_name, plain.client, plain.priority, plain.backoff) == ("", "", 0, DEFAULT)
    assert (plain.retry_on, plain.give_up_on) == ((Exception,), ())
    assert (plain.max_attempts, plain.max_crashes, plain.time_limit, plain.result_ttl) == (None,) * 4


def test_options_are_kept_in_one_form():
    declared = task(
        queue_name=Line.MAIL, backoff=[1, HOUR], retry_on=OSError, give_up_on=[KeyError, SystemExit], max_crashes=0
    )(send)

    assert (str(declared.queue_name), type(declared.queue_name)) == ("mail", str)
    assert [declared.backoff(n) for n in (1, 2)] == [1, 3600]
    assert (declared.retry_on, declared.give_up_on) == ((OSError,), (KeyError, SystemExit))


def test_a_delayed_job_cannot_go_to_the_front_and_is_told_so():
    problem = (
        f"{plain.name}: at_front and run_after exclude each other. When a delayed job is due, it goes to the end of"
    )

    assert refusal(plain.using(at_front=True).using, run_after=HOUR).startswith(problem)
    assert refusal(plain.using(run_after=5).using, at_front=True).startswith(problem)
    assert plain.using(at_front=True).using(run_after=HOUR, at_front=False).run_after == HOUR


def test_what_using_changed_travels_in_the_record(broker):
    full.using(max_attempts=9).using(time_limit=1.5, result_ttl=5, queue_name=QUEUE).delay(1)
    plain.using(max_attempts=9).delay(1)
    full.using(priority=1, queue_name=QUEUE).delay(1)

    assert {(job.task, job.priority): job.options for job in take_all(broker)} == {
        ("tests.core.tasks.options.test_values.full", 7): {"max_attempts": 9, "time_limit": 1.5, "result_ttl": 5},
        ("tests.core.tasks.options.test_values.full", 1): {},
        ("tests.core.tasks.options.test_values.plain", 0): {"max_attempts": 9},
    }


def test_using_none_stands_for_the_default_of_the_settings(broker):
    full.using(max_attempts=None, time_limit=None, result_ttl=None, max_crashes=None, queue_name=None).delay(1)

    job = take(broker)
    assert job.options == {"max_attempts": 5, "time_limit": None, "result_ttl": 3600.0}
    assert job.max_crashes == 3
