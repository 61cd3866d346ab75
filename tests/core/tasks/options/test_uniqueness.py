"""Unique tasks: which calls count as equal, and what a second call returns (G9)."""

import asyncio
import math
from datetime import timedelta
from decimal import Decimal

import pytest

from django_rtq import JobState, signals, task
from django_rtq.exceptions import DuplicateJob, JobError, Unserializable
from tests.core.tasks.refusals import refusal
from tests.support.jobs import claim, receiving, settle, take_all
from tests.support.snapshots import snapshot

NAME = "tests.core.tasks.options.test_uniqueness.send"


@task(unique=True)
def sync(account, *, full=False, tags=None):
    return account, full, tags


@task(unique=["account"])
def by_name(account, number=0):
    return account, number


@task(unique=lambda account, **_: account or None)
def by_function(account, number=0):
    return account, number


@task(unique=True)
def anything(*args, **kwargs):
    return args, kwargs


@task(unique=True, takes_context=True)
def look(context, number):
    return context, number


@task(unique=["number"])
def other(number):
    return number


@task
def plain(number=0):
    return number


def send(account, number=0):
    return account, number


MISSING = object()


def send_if(account, missing=MISSING):
    return account, missing


@pytest.fixture
def enqueued():
    """The ids that the signal job_enqueued has told."""
    told = []
    with receiving(lambda job_ids, **_: told.append(job_ids), signals.job_enqueued):
        yield told


# -- which calls are alike


@pytest.mark.parametrize(
    ("call", "same"),
    [
        (lambda: sync.delay(7), lambda: sync.delay(account=7)),
        (lambda: sync.delay(7), lambda: sync.delay(7, full=False)),
        (lambda: sync.delay(7, full=True, tags=[]), lambda: sync.delay(tags=(), full=True, account=7)),
        (lambda: sync.delay({"a": 1, "b": [2]}), lambda: sync.delay({"b": [2], "a": 1})),
        (lambda: sync.delay(Decimal("1.10")), lambda: sync.delay(Decimal("1.10"))),
        (lambda: sync.delay("ü"), lambda: asyncio.run(sync.adelay("ü"))),
        (lambda: anything.delay(1, b=2, a=3), lambda: anything.delay(1, a=3, b=2)),
        (lambda: look.delay(4), lambda: look.delay(number=4)),
        (lambda: by_name.delay(7, 1), lambda: by_name.delay(number=2, account=7)),
        (lambda: by_function.delay(7, 1), lambda: by_function.delay(number=2, account=7)),
        (lambda: sync.using(client="x").delay(7), lambda: sync.using(client="y", run_after=60).delay(7)),
    ],
)
def test_calls_that_are_alike_make_one_job(redis, broker, call, same):
    first, second = call(), same()

    assert second == first
    assert (first.duplicate, second.duplicate) == (False, True)
    assert [job.id for job in take_all(broker)] == [first.id]


@pytest.mark.parametrize(
    ("call", "different"),
    [
        (lambda: sync.delay(7), lambda: sync.delay(8)),
        (lambda: sync.delay(7), lambda: sync.delay("7")),
        (lambda: sync.delay(7), lambda: sync.delay(7, full=True)),
        (lambda: sync.delay([1, 2]), lambda: sync.delay([2, 1])),
        (lambda: anything.delay(1), lambda: anything.delay(args=(1,))),
        (lambda: anything.delay([1]), lambda: anything.delay(1)),
        (lambda: by_name.delay(7), lambda: other.delay(7)),  # of another task
        (lambda: by_function.delay(0), lambda: by_function.delay(0)),  # its function says None: not unique
        (lambda: by_function.delay(7, 1), lambda: by_function.using(unique=True).delay(7, 1)),
        (lambda: sync.delay(7), lambda: sync.using(unique=False).delay(7)),
        (lambda: sync.delay(7), lambda: sync.using(queue_name="bulk").delay(7)),
    ],
)
def test_calls_that_differ_make_two_jobs(broker, call, different):
    first, second = call(), different()

    assert first.id != second.id
    assert (first.duplicate, second.duplicate) == (False, False)


def test_a_copy_can_be_unique_where_its_task_is_not(broker):
    once = plain.using(unique=True, unique_until="start")

    assert once.delay(1) == once.delay(1) != plain.delay(1)


def test_of_many_calls_each_has_its_answer(broker, enqueued):
    handles = by_name.delay_many([((7,), {}), ((8,), {}), ((7, 1), {}), ((), {"account": 8})])

    assert [handle.duplicate for handle in handles] == [False, False, True, True]
    assert handles[:2] == handles[2:]
    assert enqueued == [[handle.id for handle in handles[:2]]]
    assert by_name.delay_many([]) == []


def test_when_it_is_over_the_next_call_makes_a_job(broker):
    first = sync.delay(7)
    assert claim(broker) == [first.id]
    assert sync.delay(7).duplicate
    settle(broker, "ack", first, worker="w2")

    assert not sync.delay(7).duplicate
    assert first.state is JobState.SUCCEEDED


# -- what becomes of the second


def test_it_raises_when_the_task_says_so(broker, enqueued):
    strict = sync.using(unique_on_conflict="raise")
    first = strict.delay(7)

    with pytest.raises(DuplicateJob) as caught:
        strict.delay(7)

    assert isinstance(caught.value, JobError)
    assert caught.value.job_id == first.id
    assert str(caught.value) == (
        f"Job {first.id} is not over yet, and its task {__name__}.sync allows no second job like it."
    )
    assert enqueued == [[first.id]]


def test_of_many_calls_it_raises_when_all_were_sent(broker):
    strict = sync.using(unique_on_conflict="raise")

    with pytest.raises(DuplicateJob):
        strict.delay_many([((7,), {}), ((7,), {}), ((8,), {})])

    assert [job.args for job in take_all(broker)] == [[7], [8]]


def test_the_last_arguments_count_while_it_waits(broker):
    late = by_name.using(unique_on_conflict="replace", run_after=timedelta(minutes=1))
    first = late.delay(7, 1)
    before = first.refresh().due_at

    second = late.using(run_after=timedelta(minutes=2)).delay(7, 2)

    assert (second, second.duplicate) == (first, True)
    assert first.refresh().args == [7, 2]
    assert first.refresh().due_at - before >= timedelta(seconds=59)


# -- refused where it is written


@pytest.mark.parametrize("value", [None, "account", 1, [], (), {"account"}, {"account": 1}])
def test_what_is_no_answer_to_what_counts_is_refused(value):
    problem = f"unique is {value!r}, but has to be True or False, a list of argument names, or a function."

    assert refusal(task(unique=value), send) == f"{NAME}: {problem}"
    assert refusal(plain.using, unique=value) == f"tests.core.tasks.options.test_uniqueness.plain: {problem}"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"unique": ["accuont"]},
            "unique names 'accuont', but the task has no such argument. It has: account, number.",
        ),
        ({"unique": [7]}, "unique names 7, but the task has no such argument. It has: account, number."),
        ({"unique": True, "unique_until": "end"}, 'unique_until is \'end\', but has to be "start" or "done".'),
        (
            {"unique": True, "unique_on_conflict": True},
            'unique_on_conflict is True, but has to be "return", "raise", "replace" or "rerun".',
        ),
        *(
            (
                {"unique": True, "unique_seconds": v},
                f"unique_seconds is {v!r}, but has to be seconds, more than 0 to ten years.",
            )
            for v in (0, -1, True, "5", math.nan, math.inf, timedelta(hours=1))
        ),
        (
            {"unique": True, "unique_seconds": None},
            "unique_seconds is None, but has to be seconds, more than 0 to ten years.",
        ),
        (
            {"unique": True, "unique_until": "start", "unique_on_conflict": "rerun"},
            'unique_on_conflict="rerun" needs unique_until="done". '
            'With "start", a call makes a new job while another one runs.',
        ),
        *(
            ({name: value}, f"{name} has no effect without unique: set that too.")
            for name, value in (("unique_until", "start"), ("unique_seconds", 5), ("unique_on_conflict", "raise"))
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_words(options, problem):
    assert refusal(task(**options), send) == f"{NAME}: {problem}"


def test_a_copy_that_is_not_unique_refuses_to_say_how():
    assert refusal(plain.using, unique_until="done") == (
        "tests.core.tasks.options.test_uniqueness.plain: unique_until has no effect without unique: set that too."
    )
    assert refusal(sync.using, unique=False, unique_seconds=5)
    assert sync.using(unique=False).unique is False  # it may have the rest from its task


def test_a_function_that_could_not_be_called_is_refused():
    async def slow(**kwargs):
        return kwargs

    assert refusal(task(unique=slow), send) == f"{NAME}: unique is an async function, but it is called without await."
    assert "unique cannot be called with the arguments of the task by name" in refusal(task(unique=lambda x: x), send)


def test_a_default_that_json_cannot_carry_is_refused_where_all_arguments_count(no_tasks):
    assert refusal(task(unique=True), send_if) == (
        f"{__name__}.send_if: the default of 'missing' is an object, which JSON cannot carry. Pass plain data "
        "instead: text, numbers, lists, dictionaries. List the arguments to compare instead of unique=True."
    )
    assert task(unique=["account"])(send_if).unique == ["account"]


def test_what_the_function_says_has_to_be_plain_data(redis, broker):
    with pytest.raises(Unserializable) as caught:
        plain.using(unique=lambda number: {number}).delay(1)

    assert str(caught.value) == (
        f"{__name__}.plain: the value of `unique` for this call is a set, which JSON cannot carry. Pass a list instead."
    )
    assert snapshot(redis) == {}
