"""What jobs remember of earlier runs: reads and writes it for the run that holds the job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.record import HeldEntry, Wait

if TYPE_CHECKING:
    from django_rtq.core.broker.redis.async_client import AsyncRedisClient


class Holder(NamedTuple):
    """A run of a job. Only who holds the job may write."""

    queue: str
    job_id: str
    worker: str
    claimed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a job remembers."""

    fields: dict[str, bytes]  # as lua/lib/steps.lua says
    wait: Wait | None = None  # the last one
    now_ms: int = 0  # the time of the server before that was read: what comes later is in neither


class StepStore:
    """Any thread may use it; coroutines use the methods whose names begin with `a`."""

    def __init__(self, broker: Broker) -> None:
        self._redis = broker.redis
        self._keys = broker.keys
        self._async_redis: Callable[[], AsyncRedisClient] = lambda: broker.async_redis

    def read(self, holder: Holder) -> Remembered | None:
        """What the job remembers. None: another run holds the job by now. Raises BrokerError."""
        return self._redis.run(self._read(holder))

    async def aread(self, holder: Holder) -> Remembered | None:
        """read() for coroutines."""
        return await self._async_redis().run(self._read(holder))

    def write(self, holder: Holder, field: str, text: str) -> bool:
        """Store a field. False: another run holds the job by now. Raises BrokerError."""
        return self._redis.run(self._write(holder, field, text))

    async def awrite(self, holder: Holder, field: str, text: str) -> bool:
        """write() for coroutines."""
        return await self._async_redis().run(self._write(holder, field, text))

    def _read(self, holder: Holder) -> Steps[Remembered | None]:
        keys, job_id = self._keys.of(holder.queue), holder.job_id
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
        return Remembered(fields=texts, wait=Wait.read(entry), now_ms=clock_ms(time))

    def _write(self, holder: Holder, field: str, text: str) -> Steps[bool]:
        arguments = (holder.job_id, holder.claimed_ms, field, text)
        call = SCRIPTS["record_step"].call(self._keys.of(holder.queue), arguments, worker=holder.worker)
        (word,) = checked((yield [call]))
        return bool(word == b"ok")
