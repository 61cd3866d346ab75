"""Jobs that are to go on later, whatever their functions make of the exception that leaves them."""

import asyncio
import logging
import sys
from contextlib import suppress
from datetime import timedelta

import pytest

from django_rtq import InvalidStep, JobSuspended, task, workflow
from django_rtq.testing import drain
from tests.support.waiting import start_thread

pytestmark = pytest.mark.usefixtures("broker")
done = []


@pytest.fixture(autouse=True)
def nothing_done():
    done.clear()


def ship(name="shipped"):
    done.append(name)


def returns_in_finally(context):
    try:
        context.wait("paid")
    finally:
        return "not paid"  # noqa: B012


def swallows(context):
    with suppress(BaseException):
        context.sleep(60)
    return "went on"


def swallows_and_goes_on(context):
    """The next sleep, step and loop leave it, too."""
    for call in (context.sleep, context.wait):
        with suppress(BaseException):
            call({context.sleep: 60}.get(call, "paid"))
    with suppress(BaseException):
        list(context.each("lines", [1, 2]))
    context.step("ship", ship)


def swallows_within_a_loop(context):
    for number in context.each("lines", range(3)):
        ship(f"begin {number}")
        with suppress(BaseException):
            context.sleep(60)
            ship(number)


async def swallows_within_a_loop_of_a_coroutine(context):
    async for number in context.aeach("lines", range(3)):
        ship(f"begin {number}")
        with suppress(BaseException):
            await context.asleep(60)
            ship(number)


def wraps(context):
    try:
        context.wait("paid")
    except JobSuspended as error:
        raise OSError("the connection is closed") from error


def ends_otherwise(context):
    try:
        context.sleep(60)
    finally:
        raise SystemExit


def sleeps_in_a_thread(context):
    def nap():
        with suppress(JobSuspended):
            context.sleep(60)

    start_thread(nap).join()


async def gathers(context):
    return len(await asyncio.gather(context.asleep(60), context.astep("x", ship, "x"), return_exceptions=True))


async def is_in_a_group(context):
    async with asyncio.TaskGroup() as group:
        group.create_task(context.await_("paid"))
        group.create_task(asyncio.sleep(60))


FORMS = {form.__name__: form for form in (
    returns_in_finally, swallows, swallows_and_goes_on, swallows_within_a_loop, swallows_within_a_loop_of_a_coroutine,
    wraps, ends_otherwise, sleeps_in_a_thread, gathers, is_in_a_group,
)}  # fmt: skip
LOOPS = ["swallows_within_a_loop", "swallows_within_a_loop_of_a_coroutine"]
FIRST_RUNS = {"gathers": ["x"], LOOPS[0]: ["begin 0"], LOOPS[1]: ["begin 0"]}
ENDS = {"returns_in_finally": "not paid", "swallows": "went on", "gathers": 2}
RAISES = {"wraps", "ends_otherwise", "is_in_a_group", "swallows_and_goes_on", *LOOPS}


@task(takes_context=True, max_attempts=1)
def run(context, name):
    return FORMS[name](context)


@task(takes_context=True, max_attempts=1)
async def arun(context, name):
    return await FORMS[name](context)


@pytest.mark.parametrize("name", FORMS)
def test_a_suspension_that_does_not_arrive_is_one_all_the_same(name, caplog):
    if name == "is_in_a_group" and sys.version_info < (3, 11):
        pytest.skip("asyncio.TaskGroup came with Python 3.11")
    job = (arun if asyncio.iscoroutinefunction(FORMS[name]) else run).delay(name)
    with caplog.at_level(logging.WARNING, logger="django_rtq"):
        drain()

    assert job.state == "scheduled"
    assert done == FIRST_RUNS.get(name, [])
    assert ("returned although it had to be left" in caplog.text) is (name not in RAISES)

    for _ in range(3):
        with suppress(Exception):
            job.send("paid")
        drain(until=timedelta(hours=1), raise_errors=False)

    if name in ENDS:
        assert job.get() == ENDS[name]
    if name in LOOPS:
        assert done == ["begin 0", "begin 0", 0, "begin 1", "begin 1", 1, "begin 2", "begin 2", 2]


@task
def added():
    """A later step."""


@task(takes_context=True)
def adds_and_swallows(context):
    context.workflow.add(added)
    with suppress(BaseException):
        context.sleep(60)


def test_what_it_adds_to_its_workflow_comes_with_the_run_that_is_not_left():
    with workflow("w") as flow:
        flow.add(adds_and_swallows)
    drain()
    assert len(flow.handle.progress().steps) == 1

    drain(until=timedelta(hours=1))

    assert len(flow.handle.progress().steps) == 2
    assert flow.handle.state == "succeeded"


@task(takes_context=True, max_attempts=3)
async def paid_or_cancelled(context, form, *, is_known):
    if is_known:  # what it remembers was read before
        await context.astep("x", ship, "x")
    waits = [context.await_("paid", 3600), context.await_("cancelled", 2)]
    if form == "gather":
        await asyncio.gather(*waits)
    elif form == "group":
        async with asyncio.TaskGroup() as group:
            for wait in waits:
                group.create_task(wait)
    elif form == "later":
        first = asyncio.create_task(waits[0])
        await asyncio.wait([first])
        await asyncio.wait([asyncio.create_task(waits[1])])
    else:
        await asyncio.wait([asyncio.create_task(wait) for wait in waits], return_when=asyncio.FIRST_COMPLETED)


@pytest.mark.parametrize("form", ["gather", "group", "wait", "later"])
@pytest.mark.parametrize("is_known", [False, True])
def test_two_waits_at_once_are_refused(form, is_known):
    if form == "group" and sys.version_info < (3, 11):
        pytest.skip("asyncio.TaskGroup came with Python 3.11")
    job = paid_or_cancelled.delay(form, is_known=is_known)
    with pytest.raises(InvalidStep, match=r"a job has one at a time: nobody would hear of the second\. Let one event"):
        drain()

    assert job.state == "dead"
