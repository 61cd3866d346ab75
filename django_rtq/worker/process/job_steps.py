"""The steps of one run: each is called once, and its result is kept for later runs of the job.

What the job remembers is read once, when the run asks first. Each step that ends is one round trip more.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from django_rtq.broker.job_steps import Holder, Remembered, StepStore
from django_rtq.exceptions import BrokerUnavailable, DuplicateStep, InvalidStep, JobSuspended, PayloadError
from django_rtq.jobs import serializer
from django_rtq.threads import ReconnectDelay

MAX_NAME = 100  # characters
MAX_STEPS = 1_000
MAX_RESULT_BYTES = 65_536
MAX_BYTES = 4_194_304  # of all that a job remembers


class JobSteps:
    """What one run knows of its job's earlier runs, and adds to it."""

    def __init__(self, store: StepStore, holder: Holder, task: str, *, patience_seconds: float) -> None:
        self._store = store
        self._holder = holder
        self._task = task
        self._patience_seconds = patience_seconds  # how long a step that is done waits for Redis
        self._began = time.monotonic()
        self._remembered: Remembered | None = None
        self._used: set[str] = set()  # names of this run

    def step(self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of a step. Calls its function if it has not returned in an earlier run."""
        self._use(name)
        fields = self._fields()
        if (done := fields.get(_field(name))) is not None:
            return _result_of(done)
        self._check_room(fields)
        began = time.perf_counter()
        result = function(*args, **kwargs)
        if inspect.isawaitable(result):
            _close(result)
            raise InvalidStep(f"{self._task}: step {name!r} is a coroutine function. Write `await context.astep(…)`.")
        text = self._written(name, result, time.perf_counter() - began)
        self._save(_field(name), text)
        return _result_of(text.encode())

    async def astep(
        self, name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """step() for coroutines. A plain function runs in the thread of sync_to_async()."""
        self._use(name)
        fields = await self._afields()
        if (done := fields.get(_field(name))) is not None:
            return _result_of(done)
        self._check_room(fields)
        began = time.perf_counter()
        if inspect.iscoroutinefunction(function):
            result = await function(*args, **kwargs)
        else:
            result = await sync_to_async(function)(*args, **kwargs)
            if isinstance(result, Awaitable):  # a partial or a lambda that returns a coroutine
                result = await result
        text = self._written(name, result, time.perf_counter() - began)
        await self._asave(_field(name), text)
        return _result_of(text.encode())

    # -- names and sizes

    def _use(self, name: object) -> None:
        """Check the name of a step. Raises InvalidStep and DuplicateStep."""
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise InvalidStep(
                f"{self._task}: the name of a step is {str(name)[:200]!r}, but has to be a str of 1 to {MAX_NAME} "
                "printable characters."
            )
        if name in self._used:
            raise DuplicateStep(
                f"{self._task}: this run has a step {name!r} already. Steps are told apart by their names: in a loop "
                'write step(f"ship {order_id}", …), or use each().'
            )
        self._used.add(name)

    def _check_room(self, fields: Mapping[str, bytes]) -> None:
        """Raises InvalidStep for one step too many, before its function is called."""
        if len(fields) >= MAX_STEPS and sum(field.startswith("step ") for field in fields) >= MAX_STEPS:
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
        size, fields = len(text.encode()), self._remembered.fields if self._remembered else {}
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

    def _fields(self) -> dict[str, bytes]:
        if self._remembered is None:
            self._remembered = _held(self._store.read(self._holder))
        return self._remembered.fields

    async def _afields(self) -> dict[str, bytes]:
        if self._remembered is None:
            self._remembered = _held(await self._store.aread(self._holder))
        return self._remembered.fields

    def _save(self, field: str, text: str) -> None:
        """Store a field. Waits while Redis is away: what was done would be done again."""
        for pause_seconds in self._pauses():
            try:
                self._note(field, text, is_held=self._store.write(self._holder, field, text))
                break
            except BrokerUnavailable:
                if pause_seconds is None:
                    raise
                time.sleep(pause_seconds)

    async def _asave(self, field: str, text: str) -> None:
        for pause_seconds in self._pauses():
            try:
                self._note(field, text, is_held=await self._store.awrite(self._holder, field, text))
                break
            except BrokerUnavailable:
                if pause_seconds is None:
                    raise
                await asyncio.sleep(pause_seconds)

    def _pauses(self) -> Iterator[float | None]:
        """How long to wait after each failed attempt to reach Redis. None: no longer."""
        delay, until = ReconnectDelay(), time.monotonic() + self._patience_seconds
        while time.monotonic() < until:
            yield delay.next_seconds()
        yield None

    def _note(self, field: str, text: str, *, is_held: bool) -> None:
        remembered = _held(self._remembered if is_held else None)
        remembered.fields[field] = text.encode()


def _held(remembered: Remembered | None) -> Remembered:
    """Raises JobSuspended if another run holds the job."""
    if remembered is None:
        raise JobSuspended("another worker holds the job by now: this run was taken for dead")
    return remembered


def _field(name: str) -> str:
    return f"step {name}"


def _result_of(text: bytes) -> Any:
    """The result in the text of a step. It was JSON in its first run, too, so that both runs get the same."""
    return serializer.loads(text.split(b" ", 2)[2])


def _close(awaitable: Any) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()  # no warning that nobody has awaited it
