"""The steps of one run: each is called once, and its result is kept for later runs of the job.

What the job remembers is read once, when the run asks first. Each step that ends is one round trip more (D142).
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import threading
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, NoReturn, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.models import QuerySet
from django.db.models.query import ModelIterable

from django_rtq.core.broker.redis.commands import Pause, arun_steps, raised, run_steps
from django_rtq.core.conf.option import NAME
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.context import iterate
from django_rtq.core.jobs.record import Wait
from django_rtq.core.threads import ReconnectDelay
from django_rtq.core.validation import TEN_YEARS, is_number
from django_rtq.databases.exactly_once import STEP_MARK, commit_once
from django_rtq.exceptions import (
    BrokerUnavailable,
    DuplicateStep,
    EventTimeout,
    InvalidStep,
    JobSuspended,
    PayloadError,
)
from django_rtq.workflows.steps.store import Holder, Remembered, StepStore

R = TypeVar("R")
Work = Generator[Any, Any, R]  # an operation, for functions and coroutines: see JobSteps.do()

MAX_STEPS = 1_000
SAVE_SECONDS = 1.0  # between two writes of a loop
CHUNK = 2_000  # rows that are read at once
MAX_RESULT_BYTES = 65_536
MAX_BYTES = 4_194_304  # of all that a job remembers

#: The step whose function is being called here, and of which run.
_called: ContextVar[tuple[JobSteps, str] | None] = ContextVar("rtq_called_step", default=None)


class _Counts(NamedTuple):
    """By these sleeps and waits of a run are told apart."""

    sleeps: int
    reads: int  # events that the job has got
    waits: dict[str, int]  # by event


class _Loop:
    """How far a loop is. What it has finished is stored once a second."""

    def __init__(self, field: str, counts: _Counts, stored: bytes | None) -> None:
        known = serializer.loads(stored) if stored else {}
        self.field = field
        self.number: int = known.get("number", 0)  # items that are finished
        self.key: Any = known.get("key")  # the primary key of the last one, before its body could change or delete it
        self.is_done: bool = known.get("is_done", False)
        # The next run begins behind these items, so their sleeps and waits have to count there.
        self.counts = _Counts(*known["counts"]) if known else counts
        self.counted = -1  # so many items were finished when the job slept or waited last, and counted `counts` before
        self.stored = self.number  # so many finished items are stored
        self.key_of: Callable[[Any], Any] | None = None  # the primary key of an item
        self.is_open = True  # its body may be running
        self.save_at = time.monotonic() + SAVE_SECONDS

    def before_change(self, counts: _Counts) -> None:
        """The job sleeps or waits: what it has counted before. Sleeps of an item that is not finished come again."""
        if self.counted != self.number and not self.is_done:
            self.counted, self.counts = self.number, counts

    def text(self, counts: _Counts) -> str:
        """What is stored of it. `counts`: what the job has counted until now."""
        self.save_at, self.stored = time.monotonic() + SAVE_SECONDS, self.number
        if self.is_done or self.counted != self.number:
            self.counts = counts
        known = {"number": self.number, "key": self.key, "is_done": self.is_done, "counts": list(self.counts)}
        return serializer.dumps(known, what=f"the place of {self.field}")


class JobSteps:
    """What one run knows of its job's earlier runs, and adds to it."""

    def __init__(
        self,
        store: StepStore,
        holder: Holder,
        task: str,
        *,
        is_exactly_once: bool,
        patience_seconds: float,
        noting_outage: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._store = store
        self._holder = holder
        self._task = task
        self._patience_seconds = patience_seconds  # how long a step that is done waits for Redis
        self._noting_outage = noting_outage
        #: What ends the run, whatever its function makes of it: swallows it, or wraps it in an exception group.
        self.left_by: JobSuspended | InvalidStep | None = None
        self._left_in: object = None  # the coroutine or thread that sleeps or waits
        self.has_progressed = False  # this run has stored something
        self._began = time.monotonic()
        self._remembered: Remembered | None = None
        self._used: set[str] = set()  # names of this run
        self._is_exactly_once = is_exactly_once
        self._counts = _Counts(0, 0, {})  # in this run; finished ones as well
        self._loops: list[_Loop] = []

    def step(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Work[Any]:
        """The result of a step. Calls its function if it has not returned in an earlier run."""
        return self._step(name, partial(self._call, name, function, args, kwargs))

    def astep(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Work[Any]:
        """step() for coroutines. A plain function runs in the thread of sync_to_async()."""

        async def call() -> str:
            began = time.perf_counter()
            with self._calling(name):
                if inspect.iscoroutinefunction(function):
                    result = await function(*args, **kwargs)
                else:
                    result = await sync_to_async(function)(*args, **kwargs)
                    if isinstance(result, Awaitable):  # a partial or a lambda that returns a coroutine
                        result = await result
            return self._written(name, result, time.perf_counter() - began)

        return self._step(name, call)

    def atomic_step(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], alias: str
    ) -> Work[Any]:
        """step() whose result is committed together with what its function writes to a database."""
        self._check_outside(f"atomic_step({name!r})")
        if alias not in connections:
            known = ", ".join(sorted(connections))
            raise InvalidStep(f"{self._task}: atomic_step() uses database {alias!r}, but DATABASES has: {known}.")
        # The name is hashed: databases compare texts in ways of their own, and the column has a length.
        digest = hashlib.blake2b(str(name).encode(errors="replace"), digest_size=16).hexdigest()
        call = partial(self._call, name, function, args, kwargs)
        row_id = f"{self._holder.job_id}{STEP_MARK}{digest}"
        return self._step(name, partial(commit_once, alias, self._task, row_id, self._holder.queue, call))

    def _step(self, name: str, call: Callable[[], Any]) -> Work[Any]:
        """`call`: calls the function, and returns the text of the step."""
        self._use(name)
        fields = (yield from self._read()).fields
        if (text := fields.get(f"step {name}")) is None:
            self._check_room(fields)
            text = (yield call).encode()
            yield from self._save(f"step {name}", text.decode())
        return serializer.loads(text.split(b" ", 2)[2])  # it was JSON in its first run, too: both runs get the same

    def _call(self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        began = time.perf_counter()
        with self._calling(name):
            result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()  # no warning that nobody has awaited it
            raise InvalidStep(f"{self._task}: step {name!r} is a coroutine function. Write `await context.astep(…)`.")
        return self._written(name, result, time.perf_counter() - began)

    @contextmanager
    def _calling(self, name: str) -> Iterator[None]:
        token = _called.set((self, name))
        try:
            yield
        finally:
            _called.reset(token)

    def passed_by_later(self) -> str:
        """The step or loop in which this is asked, and which a later run does not go through again; "": in none."""
        called = _called.get()
        if called is not None and called[0] is self:
            return f"step {called[1]!r}"
        return next((f"loop {loop.field[5:]!r}" for loop in self._loops if loop.is_open), "")

    # -- loops

    def each(self, name: str, items: Iterable[Any]) -> Iterator[Any]:
        """The items that no earlier run has finished."""
        loop = self.do(self._begin_loop(name))
        rest, clock = () if loop.is_done else self._rest(name, items, loop), time.monotonic
        number, key_of = loop.number, loop.key_of
        try:
            for item in rest:  # as little as can be: it is done for each row
                key = key_of(item) if key_of else None
                yield item
                number += 1
                loop.number = number
                loop.key = key
                if clock() >= loop.save_at:
                    self.do(self._save_loop(loop))
        finally:
            loop.is_open = False
        loop.is_done = True
        self.do(self._save_loop(loop))

    async def aeach(self, name: str, items: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
        """each() for coroutines."""
        loop = await self.ado(self._begin_loop(name))
        number = loop.number
        try:
            if not loop.is_done:
                async for item in iterate(self._rest(name, items, loop, is_async=True), 0 if loop.key_of else number):
                    key = loop.key_of(item) if loop.key_of else None
                    yield item
                    number += 1
                    loop.number, loop.key = number, key
                    if time.monotonic() >= loop.save_at:
                        await self.ado(self._save_loop(loop))
        finally:
            loop.is_open = False
        loop.is_done = True
        await self.ado(self._save_loop(loop))

    def leave(self) -> Work[None]:
        """The run is over: store how far its loops are, without waiting for a Redis that is away.

        Raises BrokerError, and JobSuspended if another run holds the job.
        """
        self._patience_seconds = 0.0
        if self.left_by is None:
            yield from self._save_loops()

    def _save_loops(self) -> Work[None]:
        for loop in self._loops:
            if loop.number > loop.stored:
                yield from self._save(loop.field, loop.text(self._counts))

    def _save_loop(self, loop: _Loop) -> Work[None]:
        self._check_left()  # an item that slept is not finished, though its body has swallowed that
        yield from self._save(loop.field, loop.text(self._counts))

    def _begin_loop(self, name: str) -> Work[_Loop]:
        self._use(name)
        fields = (yield from self._read()).fields
        self._check_room(fields)
        loop = _Loop(f"each {name}", self._counts, fields.get(f"each {name}"))
        self._set_counts(loop.counts)
        self._loops.append(loop)
        return loop

    def _rest(self, name: str, items: Any, loop: _Loop, *, is_async: bool = False) -> Any:
        """What is left of the items. Of a queryset, the objects behind the last primary key."""
        if not isinstance(items, QuerySet):
            return items if is_async else islice(items, loop.number, None)
        query = items.query
        if query.is_sliced or query.combinator or not issubclass(items._iterable_class, ModelIterable):
            raise InvalidStep(
                f"{self._task}: each({name!r}) takes a queryset of objects that is neither sliced nor a union, because "
                "it goes on behind a primary key. Filter it, or give it another iterable."
            )
        loop.key_of = attrgetter(query.get_meta().pk.attname)
        rest = items.order_by("pk") if loop.key is None else items.order_by("pk").filter(pk__gt=loop.key)
        return rest.aiterator(chunk_size=CHUNK) if is_async else rest.iterator(chunk_size=CHUNK)

    # -- sleeping and waiting

    def sleep(self, value: float | timedelta) -> Work[None]:
        """Return if the sleep is over, else leave the run."""
        self._check_may_suspend("sleep()")
        seconds = self._seconds(value, f"sleep({value!r})")
        self._set_counts(self._counts._replace(sleeps=self._counts.sleeps + 1))
        known = yield from self._read()
        last, sleeps = known.wait, self._counts.sleeps
        if last.sleeps > sleeps or (last.sleeps == sleeps and (last.event or last.due_ms <= known.now_ms)):
            return
        wait = Wait(0, sleeps, self._counts.reads, "")
        sleep = JobSuspended(f"it sleeps {seconds:g} s", seconds=seconds, waits_for=wait.text)
        yield from self._suspend("sleep()", sleep)

    def wait(self, event: str, timeout: float | timedelta | None) -> Work[Any]:
        """The value of an event. Leaves the run if it has not come yet."""
        self._check_may_suspend(what := f"wait({event!r})")
        NAME.checked(f"{self._task}: the name of an event", event, InvalidStep)
        seconds = TEN_YEARS if timeout is None else self._seconds(timeout, f"wait({event!r}, timeout={timeout!r})")
        number = self._counts.waits.get(event, 0) + 1
        self._set_counts(self._counts._replace(waits={**self._counts.waits, event: number}))
        known, place = (yield from self._read()), f"{number} {event}"
        if came := known.fields.get(f"event {place}"):
            self._set_counts(self._counts._replace(reads=self._counts.reads + 1))
            return serializer.loads(came.split(b" ", 1)[1])
        if came is not None or (known.wait.event == place and known.wait.due_ms <= known.now_ms):
            raise EventTimeout(f"{self._task}: event {event!r} has not come in {seconds:g} s.")
        wait = Wait(0, self._counts.sleeps, self._counts.reads, place)
        waits = JobSuspended(f"it waits for event {event!r}", seconds=seconds, waits_for=wait.text)
        yield from self._suspend(what, waits)

    def _suspend(self, what: str, suspended: JobSuspended) -> Work[NoReturn]:
        yield from self._save_loops()
        self._check_left(what)  # another one came first, while this one asked Redis
        self.left_by, self._left_in = suspended, _here()
        for loop in self._loops:
            loop.save_at = 0.0
        raise suspended

    def _check_left(self, wait: str = "") -> None:
        """Raises what the run was left by. `wait`: what is to begin now, beside which no other one may be open."""
        if self.left_by is None:
            return
        if wait and self._left_in != _here():
            self.left_by = InvalidStep(
                f"{self._task}: {wait} begins beside another sleep or wait, and a job has one at a time: nobody would "
                "hear of the second. Let one event say what has happened, by its value, or let one job wait for each."
            )
        raise self.left_by

    def _set_counts(self, counts: _Counts) -> None:
        for loop in self._loops:
            loop.before_change(self._counts)
        self._counts = counts

    def _check_may_suspend(self, what: str) -> None:
        """Raises InvalidStep where a transaction would be left, or kept open for days, and beside another wait."""
        self._check_left(what)
        if self._is_exactly_once:
            raise InvalidStep(
                f"{self._task}: {what} cannot be called in a task with exactly_once: its transaction would be rolled "
                "back. Use context.atomic_step() for what is to be committed once."
            )
        self._check_outside(what)
        if self._counts.sleeps + sum(self._counts.waits.values()) >= MAX_STEPS:
            raise InvalidStep(f"{self._task}: a job sleeps and waits {MAX_STEPS:,} times at the most.")

    def _check_outside(self, what: str) -> None:
        """Raises InvalidStep within a transaction. Those of a test case do not count."""
        for connection in connections.all(initialized_only=True):
            blocks = connection.atomic_blocks if connection.in_atomic_block else []
            if blocks and not getattr(blocks[-1], "_from_testcase", False):
                raise InvalidStep(
                    f"{self._task}: {what} cannot be called within atomic(), here of database {connection.alias!r}."
                )

    def _seconds(self, value: float | timedelta, what: str) -> float:
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if not is_number(seconds) or not 0 <= seconds <= TEN_YEARS:
            raise InvalidStep(f"{self._task}: {what} takes seconds or a timedelta, from 0 to ten years.")
        return seconds

    # -- names and sizes

    def _use(self, name: str) -> None:
        """Check the name of a step. Raises InvalidStep and DuplicateStep, and what the run was left by."""
        self._check_left()
        NAME.checked(f"{self._task}: the name of a step", name, InvalidStep)
        if name in self._used:
            raise DuplicateStep(
                f"{self._task}: this run has a step {name!r} already. Steps are told apart by their names: in a loop "
                'write step(f"ship {order_id}", …), or use each().'
            )
        self._used.add(name)

    def _check_room(self, fields: Mapping[str, bytes]) -> None:
        """Raises InvalidStep for one step too many, before its function is called."""
        if len(fields) >= MAX_STEPS and sum(field.startswith(("step ", "each ")) for field in fields) >= MAX_STEPS:
            raise InvalidStep(
                f"{self._task}: a job has {MAX_STEPS:,} steps at the most. Let it make other jobs, or use each()."
            )

    def _written(self, name: str, result: Any, seconds: float) -> str:
        """The text of a step. Raises InvalidStep: another run would call the function again, for the same result."""
        try:
            text = serializer.dumps(result, what=f"the result of step {name!r} of {self._task}")
        except PayloadError as error:
            raise InvalidStep(str(error)) from error
        self._check_size(f"the result of step {name!r} has", text)
        now_ms = self._holder.claimed_ms + int((time.monotonic() - self._began) * 1000)
        return f"{now_ms} {round(seconds * 1e6)} {text}"

    def _check_size(self, what: str, text: str) -> None:
        size, fields = len(text.encode()), self._remembered.fields if self._remembered is not None else {}
        if size > MAX_RESULT_BYTES:
            raise InvalidStep(
                f"{self._task}: {what} {size:,} bytes of JSON, and {MAX_RESULT_BYTES:,} are the most. Store it and "
                "return a key."
            )
        if size + sum(map(len, fields.values())) > MAX_BYTES:
            raise InvalidStep(
                f"{self._task}: its steps would have more than {MAX_BYTES:,} bytes of results. Store them and return "
                "keys."
            )

    # -- what the job remembers

    def _read(self) -> Work[Remembered]:
        if self._remembered is None:
            with self._noting_outage():
                self._remembered = _held(raised((yield self._store.read(self._holder))))
        return self._remembered

    def _save(self, field: str, text: str) -> Work[None]:
        """Store a field. Waits while Redis is away: what was done would be done again."""
        delay, until = ReconnectDelay(), time.monotonic() + self._patience_seconds
        while isinstance(is_held := (yield self._store.write(self._holder, field, text)), BrokerUnavailable):
            if time.monotonic() >= until:
                raise is_held
            yield Pause(delay.next_seconds())
        _held(self._remembered if is_held else None).fields[field] = text.encode()
        self.has_progressed = True

    def do(self, work: Work[R]) -> R:
        """Do what such an operation yields: one of the store, a call, or a Pause."""
        return run_steps(work, self._take)

    def _take(self, step: Any) -> Any:
        if callable(step):
            return step()
        try:
            return self._store.run(step)
        except BrokerUnavailable as error:
            return error

    async def ado(self, work: Work[R]) -> R:
        """do() for coroutines."""
        return await arun_steps(work, self._atake)

    async def _atake(self, step: Any) -> Any:
        if callable(step):
            return await step()
        try:
            return await self._store.arun(step)
        except BrokerUnavailable as error:
            return error


def _held(remembered: Remembered | None) -> Remembered:
    """Raises JobSuspended if another run holds the job."""
    if remembered is None:
        raise JobSuspended("another worker holds the job by now: this run was taken for dead")
    return remembered


def _here() -> object:
    """The coroutine that runs, as a task of its event loop; else the thread."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return threading.get_ident()
