"""What jobs remember of earlier runs: reads and writes it for the run that holds the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.record import HeldEntry, Wait

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
