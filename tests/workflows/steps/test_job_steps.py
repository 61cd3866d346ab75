"""Steps of jobs, in this process."""

import pytest

from django_rtq import DuplicateStep, InvalidStep, JobContext, current_job, task
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.testing import drain
from django_rtq.workflows.steps import job_steps
from tests.support.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("broker")
calls = []


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


def add(*values):
    calls.append(values)
    return sum(values)


@task(takes_context=True, max_attempts=3)
def run(context, scene):
    return SCENES[scene](context)


@task(takes_context=True, max_attempts=2, backoff=0)
def deployed(context):
    """Its second run is one of a later version, which has removed a step and renamed another."""
    first = context.step("first", add, 1)
    if context.attempt == 1:
        context.step("second", add, 2)
        raise ValueError("not yet")
    return first + context.step("third", add, 5)


@task(takes_context=True, max_attempts=2, backoff=0)
def twenty(context):
    """Fails behind its last step."""
    sums = [context.step(f"step {number}", add, number) for number in range(20)]
    if context.attempt == 1:
        raise ValueError("not yet")
    return sums


async def nothing():
    """Is not awaited."""


SCENES = {
    "twice": lambda context: [context.step("a", add, number) for number in (1, 2)],
    "in_a_helper": lambda context: current_job().step("a", add, 1, 2),
    "no_text": lambda context: context.step(7, add),
    "no_utf_8": lambda context: context.atomic_step("\ud800", add),
    "no_json": lambda context: context.step("a", object),
    "large": lambda context: context.step("a", lambda: "é" * 32_768),
    "many": lambda context: [context.step(f"step {number}", add, number) for number in range(4)],
    "much": lambda context: [context.step(f"step {number}", lambda: "x" * 100) for number in range(4)],
    "coroutine": lambda context: context.step("a", nothing),
    "stops": lambda context: context.step("a", next, iter([])),
    "stops_atomic": lambda context: context.atomic_step("a", next, iter([])),
}


def died(redis, name):
    run.delay(name)
    with pytest.raises(InvalidStep) as caught:
        drain()
    assert len(snapshot(redis)["dead"]) == 1
    return caught.value


def test_in_a_plain_call_the_function_is_called():
    assert JobContext().step("a", add, 1, 2) == 3
    assert JobContext().step("a", add, 1, 2) == 3


def test_each_step_is_a_round_trip_and_all_that_are_finished_are_one(monkeypatch):
    trips, exchange = [], RedisClient._exchange

    def noted(self, commands, **options):
        trips.append([name_of(command) for command in commands])
        return exchange(self, commands, **options)

    monkeypatch.setattr(RedisClient, "_exchange", noted)
    twenty.delay()

    first, second = drain(raise_errors=False)

    assert (len(calls), first.state, second.result) == (20, "retrying", [*range(20)])
    of_steps = [names for names in trips if {"HGETALL", "EVALSHA record_step"} & {*names}]
    read = ["TIME", "HGET", "HGET", "HGETALL"]
    assert of_steps == [read, *[["EVALSHA record_step"]] * 20, read]


def test_a_deploy_may_rename_and_remove_steps():
    deployed.delay()

    assert drain(raise_errors=False)[-1].result == 6
    assert calls == [(1,), (2,), (5,)]


def test_helpers_ask_for_the_current_job(redis):
    run.delay("in_a_helper")

    assert drain()[0].result == 3


def test_a_name_may_come_once_in_a_run(redis):
    error = died(redis, "twice")

    assert isinstance(error, DuplicateStep)
    assert "has a step 'a' already" in str(error)
    assert calls == [(1,)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_text", "the name of a step is 7, but has to be text of 1 to 100"),
        ("no_utf_8", r"the name of a step is '\\ud800', but"),
        ("no_json", "the result of step 'a' of .*run"),
        ("large", r"the result of step 'a' has 65,538 bytes of JSON, and 65,536 are the most"),
        ("coroutine", "Write `await context.astep"),
    ],
)
def test_what_cannot_be_a_step_makes_a_dead_letter(redis, name, words):
    with pytest.raises(InvalidStep, match=words):
        raise died(redis, name)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["stops", "stops_atomic"])
def test_a_step_whose_function_raises_stop_iteration_has_failed(name):
    run.delay(name)

    (first, *_) = drain(raise_errors=False)

    assert (first.state, type(first.error)) == ("retrying", StopIteration)


@pytest.mark.parametrize(
    ("name", "bound", "most", "words"),
    [
        ("many", "MAX_STEPS", 3, "a job has 3 steps at the most"),
        ("much", "MAX_BYTES", 300, "would have more than 300 bytes of results"),
    ],
)
def test_the_steps_of_a_job_are_bounded(redis, monkeypatch, name, bound, most, words):
    monkeypatch.setattr(job_steps, bound, most)

    assert words in str(died(redis, name))
    assert calls == ([(0,), (1,), (2,)] if name == "many" else [])
