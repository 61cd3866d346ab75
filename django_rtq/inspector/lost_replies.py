"""What became of jobs when a reply got lost. What is sent again finds nothing left to do, so it is read back.

Told is what is true of a job by then. That it was somebody else, who did the same while our reply got lost, cannot be
told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import ConnectionLost
from django_rtq.broker.scripts import Command
from django_rtq.jobs import record as stored

SLACK_MS = 1000  # clocks of machines do not run alike
ReadBack = Callable[[Broker, str, Sequence[str], float], list[str]]


def send(broker: Broker, commands: Sequence[Command]) -> tuple[list[Any], float | None]:
    """The replies; and if the connection was lost on the way, so that all was sent again: how long ago it was sent
    first, in seconds. Raises BrokerError."""
    started = time.monotonic()
    try:
        return broker.redis.execute(commands), None
    except ConnectionLost:
        return broker.redis.execute(commands, resend=True), time.monotonic() - started


def requeued(broker: Broker, queue: str, job_ids: Sequence[str], seconds: float) -> list[str]:
    """Those that got a new life, or are over, since so many seconds ago."""
    keys = broker.keys.of(queue)
    asked: list[Command] = [("TIME",), ("HMGET", keys.jobs, *job_ids), ("ZMSCORE", keys.finished, *job_ids)]
    (now_s, _), records, finished = broker.redis.execute(asked, resend=True)
    since_ms = (int(now_s) - seconds) * 1000 - SLACK_MS
    return [
        job_id
        for job_id, record, is_over in zip(job_ids, records, finished, strict=True)
        if is_over or (record and _ready_ms(record) >= since_ms)
    ]


def discarded(broker: Broker, queue: str, job_ids: Sequence[str], seconds: float) -> list[str]:
    """Those of which nothing is left."""
    keys = broker.keys.of(queue)
    asked: list[Command] = [("HMGET", keys.jobs, *job_ids), ("ZMSCORE", keys.finished, *job_ids)]
    records, finished = broker.redis.execute(asked, resend=True)
    places = zip(job_ids, records, finished, strict=True)
    return [job_id for job_id, record, is_over in places if record is None and is_over is None]


def has_body(broker: Broker, queue: str, job_id: str, body: str) -> bool:
    """Whether this is what a job is by now, behind its header."""
    record = broker.redis.execute_one(("HGET", broker.keys.of(queue).jobs, job_id), resend=True) or b""
    return stored.has_body(record, body)


def _ready_ms(record: bytes) -> int:
    header, _ = stored.read_head(record[:400])
    return header.ready_ms if header else 0
