"""What jobs remember of earlier runs, for the run that holds the job, and the events that are sent to them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.one_job import check_id, names_to_ask, other_place
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.conf.option import NAME
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.record import HeldEntry, Wait
from django_rtq.exceptions import JobNotFound, PayloadTooLarge, WrongState

MAX_VALUE_BYTES = 65_536
MAX_EVENTS = 1_000  # of a job
MAX_UNREAD = 100  # of them, that it has not read
MAX_EVENT_BYTES = 4_194_304  # of their values, together
T = TypeVar("T")


class Holder(NamedTuple):
    """A run of a job. Only who holds the job may write."""

    queue: str
    job_id: str
    worker: str
    claimed_ms: int


NO_WAIT = Wait(due_ms=0, sleeps=0, reads=0, event="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a job remembers."""

    fields: dict[str, bytes]  # as lua/lib/steps.lua says
    wait: Wait = NO_WAIT  # the last one
    now_ms: int = 0  # the time of the server before that was read: what comes later is in neither


class StepStore:
    """Any thread may use it, and coroutines."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def run(self, steps: Steps[T]) -> T:
        """Do it. Raises BrokerError."""
        return self._broker.redis.run(steps)

    async def arun(self, steps: Steps[T]) -> T:
        """run() for coroutines."""
        return await self._broker.async_redis.run(steps)

    def read(self, holder: Holder) -> Steps[Remembered | None]:
        """What the job remembers. None: another run holds the job by now."""
        keys, job_id = self._broker.keys.of(holder.queue), holder.job_id
        reads: list[Command] = [
            ("TIME",),
            ("HGET", keys.running(holder.worker), job_id),
            ("HGET", keys.step_jobs, job_id),
            ("HGETALL", keys.steps + job_id.encode()),
        ]
        time, held, entry, fields = checked((yield reads))
        if held is None or HeldEntry.read(held).claimed_ms != holder.claimed_ms:
            return None
        texts = {field.decode(): text for field, text in as_dict(fields).items()}
        return Remembered(fields=texts, wait=Wait.read(entry) or NO_WAIT, now_ms=clock_ms(time))

    def write(self, holder: Holder, field: str, text: str) -> Steps[bool]:
        """Store a field. False: another run holds the job by now."""
        arguments = (holder.job_id, holder.claimed_ms, field, text)
        call = SCRIPTS["record_step"].call(self._broker.keys.of(holder.queue), arguments, worker=holder.worker)
        (word,) = checked((yield [call]))
        return bool(word == b"ok")


# -- events


def written_event(event: object, value: Any) -> str:
    """The value of an event as JSON. Raises ValueError for its name, Unserializable and PayloadTooLarge."""
    NAME.checked("The name of an event", event, ValueError)
    text = serializer.dumps(value, what=f"the value of event {event!r}")
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise PayloadTooLarge(
            f"The value of event {event!r} has {len(text.encode()):,} bytes of JSON, and {MAX_VALUE_BYTES:,} are the "
            "most. Store it and send a key."
        )
    return text


def send_command(keys: QueueKeys, job_id: str, event: str, token: str, value: str) -> Command:
    """The command that gives a job an event, as JSON."""
    arguments = (job_id, event, token, value, MAX_UNREAD, MAX_EVENTS, MAX_EVENT_BYTES)
    return SCRIPTS["send_event"].call(keys, arguments)


def send(broker: Broker, job_id: str, queue: str | None, event: str, value: Any, token: str | None) -> Steps[str]:
    """Give a job an event. Returns its queue. Raises JobNotFound and WrongState, and what written_event() raises."""
    text, token = written_event(event, value), token or secrets.token_hex(8)
    check_id(job_id)
    has_finished = False
    for name in (yield from names_to_ask(broker, queue)):
        (word,) = checked((yield [send_command(broker.keys.of(name), job_id, event, token, text)]))
        answer = word.decode()
        if answer == "sent":
            return name
        if answer in _NOT_SENT:
            raise WrongState(job_id, _NOT_SENT[answer].format(event=event))
        has_finished = has_finished or answer == "finished"
    place = queue and (yield from other_place(broker, job_id, queue))
    if place:
        return (yield from send(broker, job_id, place, event, value, token))
    raise WrongState(job_id, "is over: it gets no event any more.") if has_finished else JobNotFound(job_id)


_NOT_SENT = {
    "late": "has gone on without event {event!r}: its time-out is over.",
    "full": f"has {MAX_UNREAD} events that it has not read, or has got {MAX_EVENTS:,}: it takes no more.",
    "large": f"has got events of {MAX_EVENT_BYTES:,} bytes: it takes no more.",
}
