"""Jobs of several steps, which are killed on the lines between them."""

import asyncio
import os
import signal
from datetime import timedelta
from functools import partial

from django.db import transaction

from django_rtq import EventTimeout, constant, task
from tests.app import journal
from tests.app.once_tasks import write_effect
from tests.app.tasks import wait_for

AT_ONCE = constant(0)


def die_once(name):
    """Kill this process, the first time that somebody comes here with this name."""
    try:
        (journal.folder() / f"died {name}").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def do(name, value=None):
    """A step: what it has done is in the journal."""
    journal.write("start", name)
    return value or {"name": name, "pair": (1, 2)}


async def ado(name, value=None):
    await asyncio.sleep(0)
    return do(name, value)


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def walk(context, name, deaths=()):
    """Three steps. `deaths`: the lines on which the process is killed once."""
    journal.write("start", f"{name} run")
    results = []
    for number in range(3):
        if f"before {number}" in deaths:
            die_once(f"{name} before {number}")
        results.append(context.step(f"step {number}", do, f"{name} {number}"))
        if f"after {number}" in deaths:
            die_once(f"{name} after {number}")
    return results


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
async def awalk(context, name, deaths=()):
    journal.write("start", f"{name} run")
    results = []
    for number, function in enumerate((ado, do, ado)):
        if f"before {number}" in deaths:
            die_once(f"{name} before {number}")
        results.append(await context.astep(f"step {number}", function, f"{name} {number}"))
        if f"after {number}" in deaths:
            die_once(f"{name} after {number}")
    return results


@task(takes_context=True, backoff=AT_ONCE, max_attempts=3)
def fail_between(context, name):
    """Fails twice between two steps."""
    context.step("first", do, f"{name} first")
    if context.attempt < 3:
        raise ValueError("not yet")
    return context.step("second", do, f"{name} second")


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def order(context, name, timeout=None):
    """Two steps, with a wait for somebody's answer between them."""
    journal.write("start", f"{name} run")
    try:
        charge = context.step("charge", do, f"{name} charge", "c1")
        try:
            answer = context.wait("approved", timeout=timeout)
        except EventTimeout:
            return context.step("refund", do, f"{name} refund", f"refunded {charge}")
        return context.step("ship", do, f"{name} ship", f"shipped for {answer['by']}")
    finally:
        journal.write("end", f"{name} run")


@task(takes_context=True, backoff=AT_ONCE)
async def aorder(context, name, timeout=None):
    journal.write("start", f"{name} run")
    charge = await context.astep("charge", ado, f"{name} charge", "c1")
    try:
        answer = await context.await_("approved", timeout=timeout)
    except EventTimeout:
        return await context.astep("refund", ado, f"{name} refund", f"refunded {charge}")
    return await context.astep("ship", ado, f"{name} ship", f"shipped for {answer['by']}")


@task(takes_context=True, backoff=AT_ONCE)
def naps(context, name, seconds, times=2):
    """Sleeps between steps."""
    journal.write("start", f"{name} run")
    for number in range(times):
        context.step(f"step {number}", do, f"{name} {number}")
        context.sleep(seconds)
    return context.attempt


@task(takes_context=True, backoff=AT_ONCE)
async def anaps(context, name, seconds, times=2):
    journal.write("start", f"{name} run")
    for number in range(times):
        await context.astep(f"step {number}", ado, f"{name} {number}")
        await context.asleep(timedelta(seconds=seconds))
    return context.attempt


@task(takes_context=True, backoff=AT_ONCE)
def read_all(context, count):
    """The values of several events of a name."""
    return [context.wait("comment") for _ in range(count)]


def write_once(name, number, deaths):
    """Writes a row, and dies before its commit, or right after it."""
    write_effect(f"{name} {number}")
    if f"before {number}" in deaths:
        die_once(f"{name} before {number}")
    if f"after {number}" in deaths:
        transaction.on_commit(partial(die_once, f"{name} after {number}"))
    return {"row": f"{name} {number}"}


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def book(context, name, deaths=()):
    """Steps that write to a database."""
    return [context.atomic_step(f"book {number}", write_once, name, number, deaths) for number in range(2)]


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
async def abook(context, name, deaths=()):
    return [await context.aatomic_step(f"book {number}", write_once, name, number, deaths) for number in range(2)]


def do_and_write(name):
    """A step: what it has done is in the journal, and in a row."""
    write_effect(name)
    return do(name)


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def walk_far(context, name, deaths=()):
    """Five steps, two of which write to a database."""
    for number in range(5):
        if f"before {number}" in deaths:
            die_once(f"{name} before {number}")
        if number % 2:
            context.atomic_step(f"step {number}", do_and_write, f"{name} {number}")
        else:
            context.step(f"step {number}", do, f"{name} {number}")
        if f"after {number}" in deaths:
            die_once(f"{name} after {number}")


def write_row(name):
    write_effect(name)
    return name


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def hold_on(context, name, gate, kind):
    """Waits for a gate in its first run, and then goes a step."""
    which = "second" if context.attempt > 1 else "first"
    if which == "first":
        journal.write("start", f"{name} held")
        wait_for(gate)
    answer = getattr(context, kind)("hold", write_row, f"{name} {which}")
    journal.write("end", answer)
    return answer


@task(takes_context=True, backoff=AT_ONCE, max_crashes=100)
def ship_all(context, name, count, death):
    """Dies at one of many items."""
    for number in context.each("lines", range(count)):
        if number == death:
            die_once(name)
        journal.write("start", f"{name} {number}")
    return context.step("done", do, f"{name} done", "done")
