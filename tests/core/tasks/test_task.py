"""What happens when a task is called: now, or by way of Redis."""

import asyncio
import sys

import pytest
from django.test import override_settings

from django_rtq import JobContext, JobHandle, JobState, Task, signals, task
from django_rtq.core.broker.scripts import AT_ONCE
from django_rtq.core.jobs.job import Job
from django_rtq.core.tasks import registry
from django_rtq.exceptions import (
    BrokerFull,
    BrokerUnavailable,
    PayloadTooLarge,
    TaskNotFound,
    Unserializable,
)
from tests.support.jobs import QUEUE, receiving, take, take_all
from tests.support.redis_server import UNREACHABLE
from tests.support.snapshots import snapshot


@task
def add(a, b=2):
    return a + b


@task
def echo(*args, **kwargs):
    return args, kwargs


@task(takes_context=True)
def look(context, number):
    return context, number


@task
async def fetch(number):
    return number


@pytest.fixture
def enqueued():
    """What the signal job_enqueued has told."""
    told = []
    with receiving(lambda signal, sender, **what: told.append((sender, what)), signals.job_enqueued):
        yield told


@task(client=lambda account, number: account)
def mail(account, number):
    return number


# -- how far a call goes


def test_a_reader_of_delay_passes_few_files(broker):
    mail.delay("acme", 1)  # a queue is registered with its first job
    files = set()

    def note(frame, event, _):
        if event == "call" and "/django_rtq/" in frame.f_code.co_filename:
            files.add(frame.f_code.co_filename.rpartition("/django_rtq/")[2])

    sys.setprofile(note)
    try:
        mail.delay("acme", 1)
    finally:
        sys.setprofile(None)

    assert len(files) <= 12, sorted(files)


# -- a plain call


def test_a_plain_call_runs_the_function_here_and_now():
    assert add(1) == 3
    assert add(1, b=5) == 6
    assert look(4) == (JobContext(job_id="", attempt=1, queue_name="", client=""), 4)
    assert asyncio.run(fetch(5)) == 5


def test_the_function_of_a_task_can_be_given_a_context():
    assert look.func(JobContext(attempt=3), 4) == (JobContext(attempt=3), 4)


def test_a_task_is_known_by_the_name_of_its_function():
    assert add.name == "tests.core.tasks.test_task.add"
    assert registry.get_task("tests.core.tasks.test_task.add") is add
    assert registry.all_tasks()["tests.core.tasks.test_task.fetch"] is fetch
    assert list(registry.all_tasks()) == sorted(registry.all_tasks())
    assert (add.is_async, fetch.is_async) == (False, True)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tests.core.tasks.test_task.ad", " Did you mean tests.core.tasks.test_task.add?"),
        ("tests.core.tasks.test_task.loook", " Did you mean tests.core.tasks.test_task.look?"),
        ("tests.task.test_task.look", " Did you mean tests.core.tasks.test_task.look?"),
        ("tests.core.tasks.test_task.xyzzy", ""),
        ("x", ""),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_the_next_best(name, hint):
    with pytest.raises(TaskNotFound) as caught:
        registry.get_task(name)

    assert str(caught.value).startswith(f"No task {name!r} is registered here.{hint} Workers import the modules")


# -- delay


def test_delay_leaves_a_job_that_carries_the_call_and_no_more(redis, broker):
    handle = add.delay(1, b=5)

    assert handle == JobHandle(handle.id, QUEUE)
    (record,) = redis.hvals(broker.keys.of(QUEUE).jobs)
    assert record.partition(b"\n")[2] == b'{"task":"tests.core.tasks.test_task.add","args":[1],"kwargs":{"b":5}}'
    job = take(broker)
    assert job == Job(
        id=handle.id,
        task="tests.core.tasks.test_task.add",
        queue=QUEUE,
        args=[1],
        kwargs={"b": 5},
        ready_ms=job.ready_ms,
        max_crashes=3,
    )


def test_a_context_is_no_argument_of_callers(broker):
    look.delay(4)
    look.delay(number=5)

    assert [(job.args, job.kwargs) for job in take_all(broker)] == [([4], {}), ([], {"number": 5})]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (add.delay, "add(a, b=2): missing a required argument: 'a'."),
        (lambda: add.delay(1, 2, 3), "add(a, b=2): too many positional arguments."),
        (lambda: add.delay(1, c=2), "add(a, b=2): got an unexpected keyword argument 'c'."),
        (lambda: add.delay(1, a=2), "add(a, b=2): multiple values for argument 'a'."),
        (look.delay, "look(number): missing a required argument: 'number'."),
        (lambda: look.delay(1, 2), "look(number): too many positional arguments."),
        (lambda: add.delay_many([((1,), {}), ((), {})]), "add(a, b=2): missing a required argument: 'a'."),
        (lambda: asyncio.run(add.adelay()), "add(a, b=2): missing a required argument: 'a'."),
    ],
)
def test_arguments_that_do_not_fit_fail_where_the_call_is(redis, broker, call, message):
    with pytest.raises(TypeError) as caught:
        call()

    assert str(caught.value) == f"tests.core.tasks.test_task.{message}"
    assert snapshot(redis) == {}


def test_a_value_that_json_cannot_carry_fails_where_the_call_is(redis, broker):
    for call in (lambda: add.delay({1}), lambda: add.delay_many([((1,), {}), ((), {"a": {1}})])):
        with pytest.raises(Unserializable) as caught:
            call()

        problem = "is a set, which JSON cannot carry. Pass a list instead."
        assert str(caught.value) == f'tests.core.tasks.test_task.add(): argument "a" {problem}'
    assert snapshot(redis) == {}


@pytest.mark.parametrize("character", ["a", "ü", "😀"])
def test_a_payload_may_be_as_large_as_the_settings_say_and_no_larger(redis, proxy, character):
    frame, width, most = len('{"task":"tests.core.tasks.test_task.echo","args":[""]}'), len(character.encode()), 1000
    with override_settings(RTQ={"REDIS": proxy.url, "MAX_PAYLOAD_BYTES": most}):
        fits = (most - frame) // width
        handle = echo.delay(character * fits)
        before = snapshot(redis)

        with pytest.raises(PayloadTooLarge) as caught:
            echo.delay(character * (fits + 1))
        with pytest.raises(PayloadTooLarge):
            echo.delay_many([(("a",), {}), ((character * (fits + 1),), {})])

        assert str(caught.value) == (
            f"tests.core.tasks.test_task.echo: the arguments have {frame + (fits + 1) * width:,} bytes as JSON, but "
            'RTQ["MAX_PAYLOAD_BYTES"] is 1,000. Store them and pass a key.'
        )
        assert snapshot(redis) == before
        assert handle.state is JobState.QUEUED


# -- delay_many


def test_delay_many_sends_a_few_hundred_in_one_call_of_a_script(redis, broker):
    add.delay(0)  # from now on the queue and the script are known
    take(broker)
    redis.config_resetstat()

    handles = add.delay_many(((i,), {"b": i}) for i in range(AT_ONCE * 2 + 1))

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == 3
    assert len({handle.id for handle in handles}) == AT_ONCE * 2 + 1
    jobs = take_all(broker, wanted=3)
    assert [(job.id, job.args, job.kwargs) for job in jobs] == [
        (handle.id, [i], {"b": i}) for i, handle in enumerate(handles[:3])
    ]


def test_delay_many_of_nothing_asks_for_nothing(enqueued):
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert add.delay_many([]) == []
    assert enqueued == []


def test_delay_many_takes_lists_as_well(broker):
    add.delay_many([[[1, 2], {}], ([3], {"b": 4})])

    assert [(job.args, job.kwargs) for job in take_all(broker)] == [([1, 2], {}), ([3], {"b": 4})]


@pytest.mark.parametrize("call", [7, (7, 42), ((7,),), ("ab", {}), ((7,), (("b", 1),)), {}, "ab", ((7,), {}, 1)])
def test_delay_many_says_which_call_is_none(redis, broker, call):
    with pytest.raises(TypeError) as caught:
        add.delay_many([((1,), {}), call])

    assert str(caught.value) == (
        "tests.core.tasks.test_task.add.delay_many() takes pairs of arguments and keyword arguments, like ((7, "
        "42), {}), "
        f"but number 1 is {call!r}."
    )
    assert snapshot(redis) == {}


# -- what others hear of it


def test_a_signal_tells_what_was_enqueued(broker, enqueued):
    one = add.delay(1)
    two, three = add.using(queue_name="bulk").delay_many([((2,), {}), ((3,), {})])

    assert enqueued == [
        (Task, {"job_ids": [one.id], "queue": QUEUE, "task": add.name}),
        (Task, {"job_ids": [two.id, three.id], "queue": "bulk", "task": add.name}),
    ]


def test_a_receiver_that_fails_does_not_take_the_job_back(broker):
    def fail(**what):
        raise RuntimeError("not me")

    with receiving(fail, signals.job_enqueued):
        handle = add.delay(1)

    assert handle.state is JobState.QUEUED


# -- when Redis does not take it


def test_delay_says_at_once_that_nobody_is_there(enqueued):
    with override_settings(RTQ={"REDIS": UNREACHABLE}), pytest.raises(BrokerUnavailable) as caught:
        add.delay(1)

    assert type(caught.value) is BrokerUnavailable  # which tracebacks name
    assert "127.0.0.1:1" in str(caught.value)
    assert enqueued == []


def test_delay_says_that_redis_is_full_and_stores_nothing(redis, broker, enqueued):
    with redis.full_memory(), pytest.raises(BrokerFull) as caught:
        add.delay(1)

    assert str(caught.value).startswith(
        "Redis is out of memory, and nothing was stored. Raise its maxmemory, or let workers catch up."
    )
    assert (snapshot(redis), enqueued) == ({}, [])
