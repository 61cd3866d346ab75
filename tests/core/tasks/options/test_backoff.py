"""Retry delays: constant, steps, exponential and functions of the user."""

import functools
import logging
import math
import pickle
import random
from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_rtq.core.tasks.options import backoff
from django_rtq.core.tasks.options.backoff import (
    DEFAULT,
    as_backoff,
    as_json,
    constant,
    delay_seconds,
    exponential,
    read_json,
    steps,
)
from django_rtq.core.validation import TEN_YEARS
from django_rtq.exceptions import InvalidTask, TimeLimitExceeded

ERROR = KeyError("x")


@pytest.mark.parametrize(
    ("wait", "failures", "seconds"),
    [
        (constant(30), 1, 30),
        (constant(0), 9, 0),
        (constant(0.5), 9, 0.5),
        (constant(timedelta(minutes=2)), 1, 120),
        (steps([1, 10, 60]), 0, 1),
        (steps([1, 10, 60]), 1, 1),
        (steps([1, 10, 60]), 2, 10),
        (steps([1, 10, 60]), 3, 60),
        (steps([1, 10, 60]), 4, 60),
        (steps([1, 10, 60]), 10**400, 60),
        (steps((timedelta(hours=1),)), 1, 3600),
        (exponential(jitter=False), 0, 2),
        (exponential(jitter=False), 1, 2),
        (exponential(jitter=False), 2, 4),
        (exponential(jitter=False), 9, 512),
        (exponential(jitter=False), 10, 600),
        (exponential(jitter=False), 10_000, 600),
        (exponential(jitter=False), 10**400, 600),
        (exponential(base=1.5, cap=timedelta(hours=1), jitter=False), 2, 2.25),
        (exponential(base=10**400, cap=7, jitter=False), 1, 7),
        (exponential(base=3, cap=0, jitter=False), 5, 0),
    ],
)
def test_the_wait_after_so_many_failures(wait, failures, seconds):
    assert wait(failures) == seconds
    assert delay_seconds(wait, failures, ERROR) == seconds


@given(st.integers(0, 10**400), st.floats(1, 1e300), st.floats(0, TEN_YEARS))
def test_an_exponential_wait_is_spread_over_all_of_its_span(failures, base, cap):
    longest = exponential(base, cap, jitter=False)(failures)

    assert 0 <= longest <= cap
    assert 0 <= exponential(base, cap)(failures) <= longest


def test_jitter_reaches_low_and_high():
    waits = [exponential(cap=100)(20) for _ in range(500)]

    assert min(waits) < 10
    assert max(waits) > 90
    assert 40 < sum(waits) / len(waits) < 60


def test_a_seed_of_the_project_does_not_make_two_processes_wait_alike():
    draws = []
    for _ in range(2):
        random.seed(0)
        draws.append([DEFAULT(9) for _ in range(3)])

    assert draws[0] != draws[1]
    assert isinstance(backoff._random, random.SystemRandom)  # has no state that a fork could copy


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (constant(30), "constant(30)"),
        (steps((1, 2.5)), "steps([1, 2.5])"),
        (exponential(), "exponential(base=2, cap=600, jitter=True)"),
        (exponential(3, 60, jitter=False), "exponential(base=3, cap=60, jitter=False)"),
    ],
)
def test_a_backoff_is_a_frozen_value_that_reads_as_it_was_written(wait, text):
    again = eval(text, {"constant": constant, "steps": steps, "exponential": exponential})

    assert repr(wait) == text
    assert again == wait
    assert hash(again) == hash(wait)
    assert pickle.loads(pickle.dumps(wait)) == wait
    with pytest.raises((FrozenInstanceError, TypeError, AttributeError)):
        wait.seconds = 1


NUMBER = "a delay is a number of seconds or a timedelta, not"
POSITIVE = "a delay is 0 seconds or more, not"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: constant(-1), f"constant(-1): {POSITIVE} -1."),
        (lambda: constant(math.nan), f"constant(nan): {POSITIVE} nan."),
        (lambda: constant(math.inf), f"constant(inf): {POSITIVE} inf."),
        (lambda: constant("5"), f"constant('5'): {NUMBER} '5'."),
        (lambda: constant(True), f"constant(True): {NUMBER} True."),
        (lambda: constant(None), f"constant(None): {NUMBER} None."),
        (lambda: constant(10**400), "the longest delay is ten years."),
        (lambda: constant(timedelta(days=4000)), "the longest delay is ten years."),
        (lambda: constant(timedelta(-1)), f"{POSITIVE} -86400.0."),
        (lambda: steps([]), "steps() needs at least one delay, in seconds."),
        (lambda: steps([1, -1]), f"steps(-1): {POSITIVE} -1."),
        (lambda: steps("12"), f"steps('1'): {NUMBER} '1'."),
        (lambda: exponential(0.5), "exponential(base=0.5): the base has to be a number, 1 or more."),
        (lambda: exponential(math.nan), "exponential(base=nan): the base"),
        (lambda: exponential(math.inf), "exponential(base=inf): the base"),
        (lambda: exponential("2"), "exponential(base='2'): the base"),
        (lambda: exponential(cap=-1), f"exponential(-1): {POSITIVE} -1."),
        (lambda: exponential(cap=math.inf), f"exponential(inf): {POSITIVE} inf."),
        (lambda: as_backoff(-1), f"constant(-1): {POSITIVE} -1."),
        (lambda: as_backoff(math.nan), f"constant(nan): {POSITIVE} nan."),
        (lambda: as_backoff(()), "steps() needs at least one"),
        (lambda: as_backoff([1, None]), f"steps(None): {NUMBER} None."),
        (lambda: as_backoff(None), "backoff=None is invalid. Write seconds, a timedelta, a list"),
        (lambda: as_backoff(True), "backoff=True is invalid."),
        (lambda: as_backoff("exponential"), "backoff='exponential' is invalid."),
        (lambda: as_backoff({1: 2}), "backoff={1: 2} is invalid."),
        (lambda: as_backoff(exponential), "backoff=exponential is a function that makes a backoff. Call it:"),
        (lambda: as_backoff(no_parameters), "cannot be called with the number of failures"),
        (lambda: as_backoff(three_parameters), "missing a required argument: 'c'"),
        (lambda: as_backoff(patient_async), "is an async function, but it is called without await."),
    ],
)
def test_a_backoff_that_makes_no_sense_is_refused_where_it_is_written(make, message):
    with pytest.raises(InvalidTask) as refused:
        make()

    assert message in str(refused.value)


def no_parameters():
    return 1


def three_parameters(a, b, c):
    return 1


async def patient_async(failures):
    return 1


@pytest.mark.parametrize(
    ("value", "is_now"),
    [
        (30, constant(30)),
        (0.5, constant(0.5)),
        (timedelta(minutes=1), constant(60)),
        ([1, timedelta(minutes=1)], steps([1, 60])),
        ((5,), steps([5])),
        (exponential(3), exponential(3)),
    ],
)
def test_numbers_and_lists_become_backoffs(value, is_now):
    assert as_backoff(value) == is_now


class Patient:
    def __call__(self, failures, error):
        return failures, error


SAW = {
    "failures": (lambda failures: [failures], [3]),
    "both": (lambda failures, error: [failures, error], [3, ERROR]),
    "any name": (lambda n, e: [n, e], [3, ERROR]),
    "everything": (lambda *seen: list(seen), [3, ERROR]),
    "rest": (lambda n, *rest: [n, *rest], [3, ERROR]),
    "optional error": (lambda failures, error=None: [failures, error], [3, ERROR]),
    "optional other": (lambda failures, base=2: [failures, base], [3, 2]),
    "optional other and rest": (lambda failures, base=2, *rest: [failures, base, *rest], [3, 2]),
    "optional third": (lambda failures, error, base=2: [failures, error, base], [3, ERROR, 2]),
    "keyword": (lambda failures, *, base=2: [failures, base], [3, 2]),
    "partial": (functools.partial(lambda base, failures: [base, failures], 2), [2, 3]),
    "partial keyword": (functools.partial(lambda failures, base: [failures, base], base=2), [3, 2]),
}


@pytest.mark.parametrize(("function", "saw"), SAW.values(), ids=SAW)
def test_a_function_gets_the_failures_and_the_exception_if_it_wants_it(function, saw):
    seen = []

    # The wrapper has the signature of what it wraps.
    @functools.wraps(function)
    def noting(*args):
        seen.extend(function(*args))
        return 7

    assert as_backoff(noting) is noting
    assert delay_seconds(noting, 3, ERROR) == 7
    assert seen == saw


def test_a_function_written_in_c_gets_the_failures():
    assert as_backoff(math.sqrt) is math.sqrt
    assert delay_seconds(math.sqrt, 9, ERROR) == 3
    assert delay_seconds(as_backoff(float), 9, ERROR) == 9


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (timedelta(minutes=1), 60),
        (0, 0),
        (1e18, TEN_YEARS),
        (10**400, TEN_YEARS),
        (timedelta.max, TEN_YEARS),
    ],
)
def test_an_answer_is_seconds_or_a_timedelta_and_never_more_than_ten_years(answer, seconds, caplog):
    delay = delay_seconds(lambda failures: answer, 1, ERROR)

    assert delay == seconds
    assert type(delay) is float
    assert not caplog.records


@pytest.mark.parametrize(
    "answer",
    [-1, -0.001, math.nan, math.inf, -math.inf, None, True, "5", [5], 1j, timedelta(-1), Patient()],
)
def test_a_bad_answer_is_replaced_by_the_default_and_reported(answer, caplog):
    delay = delay_seconds(lambda failures: answer, 3, ERROR)

    assert 0 <= delay <= 8
    [record] = caplog.records
    assert (record.name, record.levelno) == ("django_rtq", logging.WARNING)
    assert "failed after 3 failures; using exponential(base=2, cap=600, jitter=True) instead" in record.message
    assert record.exc_info


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), SystemExit(1), TimeLimitExceeded("x"), RecursionError()])
def test_a_backoff_that_raises_does_not_lose_the_job(error, caplog):
    def broken(failures):
        raise error

    assert 0 <= delay_seconds(broken, 1, ERROR) <= 2
    assert len(caplog.records) == 1


@pytest.mark.parametrize("function", [no_parameters, three_parameters, Patient(), None, 5])
def test_what_was_never_a_backoff_does_not_lose_the_job(function, caplog):
    assert 0 <= delay_seconds(function, 1, None) <= 2
    assert len(caplog.records) == 1


@given(st.integers(), st.sampled_from([DEFAULT, constant(3), steps([1, 2]), exponential(1), lambda n: 2**n]))
def test_a_delay_is_always_a_time_to_wait(failures, wait):
    if failures > 10_000:
        wait = DEFAULT

    assert 0 <= delay_seconds(wait, failures, None) <= TEN_YEARS


# -- stored with a job


@pytest.mark.parametrize(
    ("wait", "stored"),
    [
        (constant(30), 30),
        (constant(timedelta(seconds=0.5)), 0.5),
        (steps([1, timedelta(minutes=1)]), [1, 60]),
        (exponential(3, cap=60, jitter=False), {"base": 3, "cap": 60, "jitter": False}),
    ],
)
def test_a_backoff_of_this_package_can_be_stored(wait, stored):
    assert as_json(wait) == stored
    assert read_json(stored) == wait


def test_a_function_cannot_be_stored():
    with pytest.raises(InvalidTask, match="is a function, which cannot be stored with a job"):
        as_json(math.sqrt)


@pytest.mark.parametrize("stored", ["5", None, [], -1, {"base": 0}, {"bas": 2}, {"base": "x"}])
def test_what_is_no_stored_backoff_is_refused(stored):
    with pytest.raises((InvalidTask, TypeError)):
        read_json(stored)
