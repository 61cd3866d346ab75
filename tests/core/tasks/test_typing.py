"""What a type checker makes of a project that uses tasks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parent.parent.parent.parent

# Where an error is expected it is ignored by its kind, and an ignore that nothing needs is an error.
CALLS = """
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from typing_extensions import assert_type

from django_rtq import Bury, CancelAnswer, JobContext, JobDetails, JobHandle, JobState, Retry, Task
from django_rtq import constant, exponential, task, workflow
from django_rtq.console.reading.readers import readers_of
from django_rtq.workflows.builder import Step, Steps


@task
def bare(a: int, b: str = "") -> float:
    return 1.0


@task(queue_name="mail", client=lambda account_id, **_: account_id, backoff=exponential(), retry_on=(OSError,))
def with_options(account_id: int, *, dry: bool = False) -> list[int]:
    raise Retry("later", after=timedelta(minutes=1))


@task(takes_context=True, max_attempts=3)
def with_context(context: JobContext, number: int) -> str:
    raise Bury(context.job_id)


@task(takes_context=True)
def with_steps(context: JobContext, number: int) -> str:
    charge = context.step("charge", bare, number, b="x")
    assert_type(charge, float)
    context.step("charge", bare, "x")  # type: ignore[arg-type]
    assert_type(context.using(database="billing").atomic_step("book", len, "x"), int)
    for item in context.each("lines", ["a"]):
        assert_type(item, str)
    context.sleep(timedelta(days=1))
    context.wait("approved", timeout=1.5)
    return ""


@task(takes_context=True)
async def with_async_steps(context: JobContext, number: int) -> str:
    assert_type(await context.astep("a", coroutine, number), bytes)
    assert_type(await context.astep("b", len, "x"), int)
    async for item in context.aeach("lines", ["a"]):
        assert_type(item, str)
    await context.asleep(1)
    return ""


async def coroutine(number: int) -> bytes:
    return b""


@task(takes_context=False)
def without_context(number: int) -> str:
    return ""


@task()
async def on_the_loop(number: int) -> str:
    return ""


# A plain call is a call of the function.
assert_type(bare(1, b="x"), float)
assert_type(with_options(1, dry=True), list[int])
assert_type(with_context(5), str)
assert_type(without_context(5), str)
bare("x")  # type: ignore[arg-type]

# delay() takes what the function takes.
assert_type(bare.delay(1, b="x"), JobHandle[float])
assert_type(with_options.delay(1, dry=True), JobHandle[list[int]])
assert_type(with_context.delay(5), JobHandle[str])
assert_type(with_context.delay(number=5), JobHandle[str])
assert_type(on_the_loop.delay(5), JobHandle[str])
assert_type(bare.delay(1).get(timeout=5), float)
assert_type(on_the_loop.delay(5).result, str)
assert_type(bare.delay_on_commit(1, b="x"), JobHandle[float])
assert_type(on_the_loop.delay_on_commit(5), JobHandle[str])
bare.delay_on_commit("x")  # type: ignore[arg-type]
bare.delay("x")  # type: ignore[arg-type]
bare.delay()  # type: ignore[call-arg]
bare.delay(1, c=2)  # type: ignore[call-arg]
with_options.delay(1, True)  # type: ignore[call-arg]
with_context.delay(JobContext(), 5)  # type: ignore[call-arg, arg-type]
with_context.delay("x")  # type: ignore[arg-type]

# Options for several tasks.
mail_task = task.with_options(queue_name="mail", max_attempts=3)


@mail_task
def welcome(user_id: int) -> str:
    return ""


@mail_task(priority=1, takes_context=True, name="shop.goodbye", aliases=["shop.tasks.goodbye"])
def goodbye(context: JobContext, user_id: int) -> str:
    return ""


assert_type(welcome.delay(1), JobHandle[str])
assert_type(goodbye.delay(1), JobHandle[str])
welcome.delay("x")  # type: ignore[arg-type]
task.with_options(uniq=True)  # type: ignore[call-arg]
task.with_options(name="shop.mail")  # type: ignore[call-arg]
bare.using(headers={"tenant": "acme"}).delay(1)
bare.using(headers=3)  # type: ignore[arg-type]

# Options are checked where they are written.
task(uniq=True)  # type: ignore[call-overload]
task(max_attempts="3")  # type: ignore[call-overload]
task(queue_name=3)  # type: ignore[call-overload]
task(run_after=3)  # type: ignore[call-overload]
task(unique_until="later")  # type: ignore[call-overload]
bare.using(on_commit=3)  # type: ignore[arg-type]
bare.using(countdown=3)  # type: ignore[call-arg]
bare.using(run_after="x")  # type: ignore[arg-type]
bare.using(backoff=lambda: "x")  # type: ignore[arg-type, return-value]
bare.using(retry_on=OSError)  # type: ignore[call-arg]

# So do copies with other options.
assert_type(bare.using(queue_name="bulk", run_after=timedelta(hours=1)).delay(1), JobHandle[float])
assert_type(bare.using(max_attempts=3, backoff=[5, timedelta(minutes=1)]).delay(1), JobHandle[float])
bare.using(priority=5).delay("x")  # type: ignore[arg-type]

# Unique jobs.
@task(unique=["number"], unique_until="start", unique_on_conflict="replace")
def once(number: int) -> None: ...


assert_type(once.delay(5).duplicate, bool)
assert_type(once.using(unique=lambda number: number).delay(5), JobHandle[None])

# Many calls, and those of async code.
assert_type(bare.delay_many([((1,), {}), ((2, "x"), {}), ([3], {"b": "y"})]), list[JobHandle[float]])
assert_type(on_the_loop.delay_many([((1,), {})]), list[JobHandle[str]])
assert_type(bare.delay_many(iter([((1,), {"b": ""})]))[0].get(), float)
bare.delay_many([1, 2])  # type: ignore[list-item]


async def view() -> JobHandle[float]:
    assert_type(await on_the_loop.adelay(5), JobHandle[str])
    assert_type(await (await on_the_loop.adelay(5)).aget(), str)
    assert_type(await on_the_loop(5), str)
    await bare.adelay("x")  # type: ignore[arg-type]
    await bare.adelay()  # type: ignore[call-arg]
    assert_type(await bare.adelay_many([((1,), {}), ([2], {"b": "x"})]), list[JobHandle[float]])
    await bare.adelay_many([1, 2])  # type: ignore[list-item]
    handle = await bare.using(priority=5).adelay(1)
    assert_type(await handle.aget(5), float)
    assert_type(await handle.aresult(), float)
    assert_type(await handle.astate(), JobState)
    assert_type(await handle.arefresh(), JobDetails)
    assert_type(await handle.acancel(terminate=True), CancelAnswer)
    await handle.aget("5")  # type: ignore[arg-type]
    assert_type((await on_the_loop.adelay_many([((5,), {})]))[0], JobHandle[str])
    return await bare.adelay(1)


# A handle, and annotations.
assert_type(bare.delay(1).state, JobState)
assert_type(bare.delay(1).result, float)
kept: Task[[int], str] = without_context
any_handle: JobHandle = bare.delay(1)
waits = [constant(5), exponential(cap=timedelta(hours=1))]

# A workflow: steps take what functions take, and their results have the types of these.
@task
def add_up(numbers: Iterable[float]) -> float:
    return sum(numbers)


@task
def halve(number: int) -> float:
    return number / 2


with workflow("flow") as flow:
    one = flow.add(bare, 1, b="x")
    assert_type(one, Step[float])
    assert_type(flow.add(on_the_loop, 5), Step[str])
    many = flow.map(without_context, [1, 2])
    assert_type(many, Steps[str])
    assert_type(flow.add_many(bare, [((1,), {})]), Steps[float])
    flow.add(add_up, flow.map(halve, [1, 2]).results)
    flow.after(one, many, ended=True).add(without_context, 5)
    flow.on_death(without_context, 5)
    flow.add(bare, "x")  # type: ignore[arg-type]
    flow.map(without_context, ["x"])  # type: ignore[arg-type]
    flow.add(without_context, one.result)  # type: ignore[arg-type]
    flow.add(add_up, many.results)  # type: ignore[arg-type]
    flow.add(add_up, one.result)  # type: ignore[arg-type]
    flow.on_death(without_context, "x")  # type: ignore[arg-type]
"""


def test_calls_keep_the_types_of_the_function(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: the types of calls are NOT checked")
    (tmp_path / "calls.py").write_text(CALLS)
    settings = ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--follow-imports=silent"]
    settings += ["--no-site-packages", "--ignore-missing-imports"]  # Django's types take seconds, and are not asked for

    done = subprocess.run(
        [sys.executable, "-m", "mypy", *settings, "calls.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert (done.stdout + done.stderr, done.returncode) == ("Success: no issues found in 1 source file\n", 0)


def test_pyright_finds_the_same_errors(tmp_path):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed: its view of the types is NOT checked")
    (tmp_path / "calls.py").write_text(CALLS)
    settings = {"extraPaths": [str(ROOT)], "enableTypeIgnoreComments": False, "typeCheckingMode": "basic"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))

    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "calls.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    found = [error for error in json.loads(done.stdout)["generalDiagnostics"] if error["severity"] == "error"]
    expected = {number for number, line in enumerate(CALLS.splitlines()) if "# type: ignore" in line}
    assert {error["range"]["start"]["line"] for error in found} == expected, found
