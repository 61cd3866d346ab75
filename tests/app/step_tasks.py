"""Jobs of several steps, which are killed on the lines between them."""

import asyncio
import os
import signal

from django_rtq import constant, task
from tests.app import journal

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
