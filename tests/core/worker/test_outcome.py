"""Decisions about what follows from a run."""

import asyncio
import json
import re
import traceback

import pytest
from django.test import override_settings

from django_rtq import Bury, Retry, constant
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import PARK_SECONDS
from django_rtq.core.tasks import Task
from django_rtq.core.worker.outcome import (
    BURIED,
    LONGEST_ERROR,
    LONGEST_TRACEBACK,
    RETRIED,
    Outcome,
    decide,
    decide_unknown,
    failure_line,
    unknown_since,
)
from django_rtq.exceptions import TaskNotFound, TimeLimitExceeded
from tests.app import tasks

BROKEN, ODD = ValueError("broken"), LookupError("odd")


def outcome_of(error, *, failures=0, most=3, of_call=None, **options):
    task = Task(func=tasks.note.func, **{"backoff": constant(7), **options})
    return decide(task, error, failures=failures, max_attempts=most, options=of_call or {})


@pytest.mark.parametrize(
    ("error", "options", "seconds"),
    [
        (BROKEN, {}, 7),
        (BROKEN, {"failures": 1}, 7),
        (BROKEN, {"retry_on": (ValueError,)}, 7),
        (BROKEN, {"give_up_on": (LookupError,)}, 7),
        (TimeLimitExceeded("late"), {}, 7),
        (Retry("again"), {}, 7),
        (BROKEN, {"of_call": {"backoff": 3}}, 3),
        (BROKEN, {"of_call": {"backoff": [1, 2, 30]}, "failures": 1}, 2),
        (BROKEN, {"of_call": {"backoff": {"base": 5, "cap": 600, "jitter": False}}, "failures": 1}, 25),
        (Retry("again"), {"of_call": {"backoff": 3}, "give_up_on": (Exception,)}, 3),
        (Retry("again", after=2.5), {}, 2.5),
        (Retry("again", after=-1), {}, 0),
        (Retry("again", after=1), {"give_up_on": (Exception,)}, 1),
        (SystemExit(1), {"retry_on": (ValueError,)}, 7),
        (KeyboardInterrupt(), {}, 7),
        (asyncio.CancelledError(), {}, 7),
    ],
)
def test_a_failure_is_tried_again(error, options, seconds):
    assert outcome_of(error, **options) == Outcome(RETRIED, error, seconds)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (BROKEN, {"failures": 2}),
        (BROKEN, {"most": 1}),
        (BROKEN, {"retry_on": (LookupError,)}),
        (BROKEN, {"give_up_on": (ValueError,)}),
        (ODD, {"retry_on": (Exception,), "give_up_on": (LookupError,)}),
        (Bury("hopeless"), {}),
        (Retry("again"), {"failures": 2}),
        (SystemExit(1), {"most": 1}),
    ],
)
def test_a_failure_is_the_last(error, options):
    assert outcome_of(error, **options) == Outcome(BURIED, error)


def test_a_job_of_an_unknown_task_waits_for_a_newer_worker_but_not_for_ever():
    error = TaskNotFound("what is that?")

    assert decide_unknown(error, waited_seconds=86_399, longest_seconds=86_400) == Outcome(
        RETRIED, error, PARK_SECONDS, is_counted=False
    )
    assert decide_unknown(error, waited_seconds=86_400, longest_seconds=86_400) == Outcome(
        BURIED, error, is_counted=False
    )
    assert decide_unknown(error, waited_seconds=0, longest_seconds=0) == Outcome(BURIED, error, is_counted=False)


@pytest.mark.parametrize(
    ("errors", "since_ms"),
    [
        ([], None),
        ([{}], None),
        ([{"error_class": "django_rtq.exceptions.TaskNotFound", "at": 5}], 5),
        (
            [{"error_class": "django_rtq.exceptions.TaskNotFound", "at": 5}, {"error_class": "ValueError", "at": 6}],
            None,
        ),
        ([{"error_class": "django_rtq.exceptions.TaskNotFound", "at": None}], None),
    ],
)
def test_the_newest_failure_tells_since_when_a_job_waits_for_who_knows_its_task(errors, since_ms):
    assert unknown_since(errors) == since_ms


@pytest.mark.parametrize("kind", sorted(tasks.ERRORS))
def test_a_failure_is_one_line_of_bounded_length_whatever_the_exception_does(kind):
    try:
        raise tasks.ERRORS[kind]()
    except BaseException as raised:  # noqa: BLE001
        line = failure_line(raised, at_ms=5, attempt=2, worker="w1")

    assert "\n" not in line
    assert len(line) < 6 * (LONGEST_ERROR + LONGEST_TRACEBACK)
    error = json.loads(line.encode())
    assert (error["at"], error["attempt"], error["worker"]) == (5, 2, "w1")
    assert len(error["error"]) <= LONGEST_ERROR
    assert len(error["traceback"]) <= LONGEST_TRACEBACK


@pytest.mark.parametrize("version", ["v44", None])
def test_a_failure_names_the_version_of_the_project(version):
    with override_settings(RTQ={"VERSION": version}):
        line = json.loads(failure_line(BROKEN, at_ms=5, attempt=2, worker="w1"))

    assert ("version" in line) is bool(version)
    assert Attempt.read(line).version == (version or "")


def test_the_traceback_begins_with_the_code_of_the_task():
    try:
        tasks.raises.func("base")
    except BaseException as raised:  # noqa: BLE001
        error = json.loads(failure_line(raised, at_ms=5, attempt=2, worker="w1"))
        whole = "".join(traceback.format_exception(raised))

    assert error["traceback"] == re.sub(r"^ +[~^]+\n", "", whole, flags=re.MULTILINE)
    assert error["error_class"] == "builtins.BaseException"
