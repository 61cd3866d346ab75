"""The declaration of a task whose function gets many jobs at once."""

import re

import pytest

from django_rtq import BatchFailed, task
from django_rtq.core.tasks import registry
from django_rtq.exceptions import InvalidTask
from django_rtq.testing import captured
from tests.app.batch_tasks import index
from tests.support.jobs import QUEUE


def takes_calls(calls):
    return len(calls)


async def acalls(calls): ...


def takes_two(calls, more): ...


def takes_context(context, calls): ...


@pytest.fixture(autouse=True)
def tasks():
    """Tasks that a test declares are forgotten."""
    before = [(names, dict(names)) for names in (registry._tasks, registry.batch_tasks)]
    yield
    for names, kept in before:
        names.clear()
        names.update(kept)


@pytest.mark.parametrize(
    ("func", "options", "why"),
    [
        (acalls, {"batch": 5}, "runs in a thread, so it cannot be a coroutine function. Write `def`"),
        (
            takes_calls,
            {"batch": 5, "exactly_once": True},
            "commits the id of one job .* Leave out batch or exactly_once",
        ),
        (
            takes_context,
            {"batch": 5, "takes_context": True},
            "Each call has its id, attempt, client and headers instead",
        ),
        (
            takes_two,
            {"batch": 5},
            r"gets one argument, the list of its calls: def takes_two\(calls: Sequence\[Call\]\)",
        ),
        (takes_calls, {"batch": 1}, "batch is 1, but has to be a whole number from 2 to 100"),
        (takes_calls, {"batch": 101}, "batch is 101, but has to be a whole number from 2 to 100"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(func, options, why):
    with pytest.raises(InvalidTask, match=why):
        task(**options)(func)

    assert not any(name.startswith(__name__) for name in registry._tasks)


def test_its_jobs_take_any_arguments():
    with captured() as jobs:
        index.delay(1, "a", urgent=True)
        index.delay_many([((2,), {}), ((), {"x": 3})])

    assert [(job.args, job.kwargs) for job in jobs] == [([1, "a"], {"urgent": True}), ([2], {}), ([], {"x": 3})]


def test_functions_of_options_get_the_arguments_of_one_job(broker):
    by_client = task(batch=5, client=lambda args, **_: args[0], name="by_client")(takes_calls)

    with captured() as jobs:
        by_client.delay("acme", 1)

    assert [job.client for job in jobs] == ["acme"]


def test_its_jobs_can_be_unique(broker):
    unique = task(batch=5, unique=True, name="unique_batch")(takes_calls)

    assert not unique.delay(1).duplicate
    assert unique.delay(1).duplicate
    assert not unique.delay(2).duplicate


def test_options_of_single_calls_are_those_of_other_tasks(broker, readers):
    job = index.using(priority=5, client="x", max_attempts=2).delay(1)

    assert (readers.find(job.id).client, readers.find(job.id).queue) == ("x", QUEUE)
    with pytest.raises(InvalidTask, match=r"does not take 'batch'\. Use @task"):
        index.using(batch=5)


def test_errors_of_calls_are_checked_where_they_are_written():
    with pytest.raises(TypeError, match=re.escape("BatchFailed: 'a' is no place of a call in the list")):
        BatchFailed({"a": ValueError()})
    with pytest.raises(TypeError, match="BatchFailed: 'no' for call 2 is no exception"):
        BatchFailed({2: "no"})
