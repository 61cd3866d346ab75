"""The running job, as its function gets it: its id and attempt, and its progress reports."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from typing import Any, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, transaction

from django_rtq.core.jobs.job import LOG_FIELDS
from django_rtq.core.validation import is_number
from django_rtq.exceptions import EventTimeout, InvalidWorkflow

P = ParamSpec("P")
R = TypeVar("R")

MAX_TEXT = 200  # characters of a progress text that are stored
_MAX_NUMBER = 1e15  # integers up to this are exact as JSON numbers


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a task with takes_context=True gets as its first argument."""

    job_id: str = ""  # "" in a plain call
    attempt: int = 1
    queue_name: str = ""
    client: str = ""
    worker: str = ""  # the name of the process that runs it
    backend: str = ""  # in TASKS, if it has a Redis of its own and this job is there
    task_name: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)  # of using() and middleware; do not change them
    _report: Callable[[str], None] | None = field(default=None, repr=False, compare=False)
    _steps: Callable[[], Any] | None = field(default=None, repr=False, compare=False)  # JobSteps of workflows/steps/
    _flow: Callable[[], Any] | None = field(default=None, repr=False, compare=False)
    _database: str = field(default=DEFAULT_DB_ALIAS, repr=False, compare=False)  # of atomic_step()

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report progress. Takes microseconds: the latest report is stored in the background, at most twice a second.

        The text is cut to 200 characters. Does nothing in a plain call. Raises TypeError and ValueError.
        """
        numbers = {"done": _number(done, "done"), "total": None if total is None else _number(total, "total")}
        if not isinstance(text, str):
            raise TypeError(f"progress(text={text!r}): has to be a str.")
        if self._report is not None:
            clean = text[:MAX_TEXT].encode("utf-8", "replace").decode()
            self._report(json.dumps({**numbers, "text": clean}))

    @property
    def workflow(self) -> Any:
        """Adds steps to the workflow of the job, with add(), map(), add_many() and after() of workflow().

        They are sent when the function returns, and nothing if it raises, sleeps or waits: then a later run adds them.
        What waits after the step of the job waits for them, too. Raises InvalidWorkflow in other jobs, and within
        steps and each().
        """
        if self._flow is None:
            raise InvalidWorkflow("", "is not there: this is a plain call, not a job of a workflow.")
        return self._flow()

    def step(self, name: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function, once: a later run of the job gets its result, as JSON, and does not call it.

        In a plain call it calls the function. Raises InvalidStep and DuplicateStep, then the job is dead.
        """
        if self._steps is None:
            return function(*args, **kwargs)
        steps = self._steps()
        result: R = steps.do(steps.step(name, function, args, kwargs))
        return result

    @overload
    async def astep(self, name: str, function: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def astep(self, name: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    async def astep(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """step() for coroutines: of a coroutine function, or of a function, which runs in another thread."""
        if self._steps is not None:
            steps = self._steps()
            return await steps.ado(steps.astep(name, function, args, kwargs))
        result = function(*args, **kwargs)
        return await result if isinstance(result, Awaitable) else result

    def atomic_step(self, name: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """step() whose function runs in a transaction: what it writes and its result are committed together.

        So it is committed once, whatever dies when. In database `default`: another one by using(). Not within atomic().
        """
        if self._steps is None:
            with transaction.atomic(using=self._database):
                return function(*args, **kwargs)
        steps = self._steps()
        result: R = steps.do(steps.atomic_step(name, function, args, kwargs, self._database))
        return result

    async def aatomic_step(self, name: str, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """atomic_step() for coroutines. The function is a plain one, and runs in the thread of sync_to_async()."""
        return await sync_to_async(self.atomic_step)(name, function, *args, **kwargs)

    def using(self, *, database: str) -> JobContext:
        """This context, with another database for atomic_step()."""
        return replace(self, _database=database)

    def each(self, name: str, items: Iterable[R]) -> Iterator[R]:
        """Iterate over a queryset, by primary key, or over another iterable. A later run goes on behind what is done.

        How far it is, is stored once a second, and when the job sleeps, waits or fails. An item is done when the next
        one is asked for.
        """
        return iter(items) if self._steps is None else self._steps().each(name, items)

    def aeach(self, name: str, items: Iterable[R] | AsyncIterable[R]) -> AsyncIterator[R]:
        """each() for coroutines: `async for`."""
        return iterate(items) if self._steps is None else self._steps().aeach(name, items)

    def sleep(self, seconds: float | timedelta) -> None:
        """Go on so much later, in another run: until then the job takes no slot of a worker.

        Leaves the function by JobSuspended, a BaseException: `finally` blocks run each time. The next run passes this
        call when the time is over. Does nothing in a plain call.
        """
        if self._steps is not None:
            steps = self._steps()
            steps.do(steps.sleep(seconds))

    async def asleep(self, seconds: float | timedelta) -> None:
        """sleep() for coroutines."""
        if self._steps is not None:
            steps = self._steps()
            await steps.ado(steps.sleep(seconds))

    def wait(self, event: str, timeout: float | timedelta | None = None) -> Any:
        """The value of an event that JobHandle.send() gives the job, before or after this call.

        Leaves the function as sleep() does until it has come. Raises EventTimeout after `timeout`; in a plain call at
        once. The second wait for an event of this name gets the second one.
        """
        if self._steps is None:
            raise EventTimeout(f"wait({event!r}): this is no job, so nobody can send it an event.")
        steps = self._steps()
        return steps.do(steps.wait(event, timeout))

    async def await_(self, event: str, timeout: float | timedelta | None = None) -> Any:
        """wait() for coroutines."""
        if self._steps is None:
            raise EventTimeout(f"await_({event!r}): this is no job, so nobody can send it an event.")
        steps = self._steps()
        return await steps.ado(steps.wait(event, timeout))


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one job, and what is known of it. Tests make calls of their own: ``index([Call([1])])``."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""  # of its job; "" in a plain call
    attempt: int = 1  # the number of this run, from 1
    queue_name: str = ""
    client: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)  # of using() and middleware; do not change them


class CurrentRun:
    """A thread or coroutine that runs jobs one after another, and the run that it is at."""

    __slots__ = ("run",)

    def __init__(self, run: Any = None) -> None:
        self.run = run  # a Run of core/worker/run.py


current_run: ContextVar[CurrentRun | None] = ContextVar("rtq_current_run", default=None)


def running() -> Any:
    """The run of the current job. For code that only a job calls."""
    here = current_run.get()
    assert here is not None
    assert here.run is not None
    return here.run


def noting_outage() -> AbstractContextManager[None]:
    """Within this, the package itself asks Redis: an outage is no failure of the current job, if there is one."""
    here = current_run.get()
    return nullcontext() if here is None or here.run is None else here.run.noting_outage()


def current_job() -> JobContext | None:
    """The job that runs in this thread or coroutine; None outside a job, as in a plain call."""
    here = current_run.get()
    return None if here is None or here.run is None else here.run.context


def about_current_job() -> dict[str, Any]:
    """The LOG_FIELDS of the job that runs in this thread or coroutine; empty outside a job."""
    job = current_job()
    if job is None:
        return {}
    return dict(zip(LOG_FIELDS, (job.job_id, job.task_name, job.queue_name, job.client, job.attempt), strict=True))


def report_progress(done: float, total: float | None = None, text: str = "") -> None:
    """progress() of the current job. Outside a job it only checks its arguments."""
    (current_job() or JobContext()).progress(done, total, text)


async def iterate(items: Iterable[R] | AsyncIterable[R], skipped: int = 0) -> AsyncIterator[R]:
    """The items of an iterable of any kind, behind so many of them."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            if skipped <= 0:
                yield item
            skipped -= 1
    else:
        for item in islice(items, skipped, None):
            yield item


def _number(value: object, name: str) -> float:
    if not is_number(value):
        raise TypeError(f"progress({name}={value!r}): has to be a number.")
    if not 0 <= value <= _MAX_NUMBER or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(f"progress({name}={value!r}): has to be between 0 and {_MAX_NUMBER:g}.")
    return value
