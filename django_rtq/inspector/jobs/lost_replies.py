"""Finds out what an action did when its reply was lost.

The action is sent again and finds nothing left to do, so the jobs are read instead. This reports their current state:
if somebody else did the same at the same moment, the two cannot be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

from django_rtq.broker.broker import Broker
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.broker.redis.commands import Argument, Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerUnavailable
from django_rtq.jobs import record as stored

SLACK_MS = 1000  # clocks of two machines run apart


def send(broker: Broker, commands: Sequence[Command]) -> tuple[list[Any], float | None]:
    """Send commands, and once more if the connection is lost. Raises BrokerError.

    Returns the replies, and how many seconds ago the commands were sent first; None: they were sent once.
    """
    started = time.monotonic()
    try:
        return broker.redis.execute(commands), None
    except BrokerUnavailable as error:
        if not error.is_connection_lost:
            raise
        return broker.redis.execute(commands, resend=True), time.monotonic() - started


def send_ids(
    broker: Broker,
    queue: str,
    name: Literal["requeue", "discard"],
    arguments: Sequence[Argument],
    ids: Sequence[str],
    *,
    may_stop: bool = False,
) -> list[str]:
    """Call a script for these jobs, with their ids behind these arguments. Returns the ids that it acted on.

    Some ids at a time, each call in its own round trip: Redis serves others in between. `may_stop`: a call may
    end after some jobs, one at least; the next call gets the ids behind the last of them.
    """
    was_done = {"requeue": requeued, "discard": discarded}[name]
    done: list[str] = []
    left = list(ids)
    while left:
        step, known = left[:MAINTAIN_AT_ONCE], len(done)
        (reply,), resent_after = send(broker, [SCRIPTS[name].call(broker.keys.of(queue), (*arguments, *step))])
        done += [job_id.decode() for job_id in reply]
        if resent_after is not None:
            unclear = [job_id for job_id in step if job_id not in set(done)]
            done += was_done(broker, queue, unclear, resent_after) if unclear else []
        acted = set(done[known:]) if may_stop else ()
        last = max((place for place, job_id in enumerate(step) if job_id in acted), default=len(step) - 1)
        left = left[last + 1 :]
    return done


def requeued(broker: Broker, queue: str, job_ids: Sequence[str], seconds: float) -> list[str]:
    """The ids that were queued again, or have finished, in the last `seconds`."""
    now_s, records, finished = _read_places(broker, queue, job_ids)
    since_ms = (now_s - seconds) * 1000 - SLACK_MS
    return [
        job_id
        for job_id, record, is_over in zip(job_ids, records, finished, strict=True)
        if is_over or (record and _ready_ms(record) >= since_ms)
    ]


def discarded(broker: Broker, queue: str, job_ids: Sequence[str], _: float) -> list[str]:
    """The ids of which nothing is left."""
    _, records, finished = _read_places(broker, queue, job_ids)
    places = zip(job_ids, records, finished, strict=True)
    return [job_id for job_id, record, is_over in places if record is None and not is_over]


def _read_places(broker: Broker, queue: str, job_ids: Sequence[str]) -> tuple[int, list[bytes | None], list[bool]]:
    """The server's time in seconds, the records of these jobs, and which of them have finished lately."""
    keys = broker.keys.of(queue)
    commands: list[Command] = [("TIME",), ("HMGET", keys.jobs, *job_ids)]
    commands += [("SMISMEMBER", key, *job_ids) for key in (keys.finished, keys.finished_before)]
    (now_s, _), records, finished, before = broker.redis.execute(commands, resend=True)
    return int(now_s), records, [bool(one or other) for one, other in zip(finished, before, strict=True)]


def has_body(broker: Broker, queue: str, job_id: str, body: str) -> bool:
    """Whether the record of the job has this body now."""
    record = broker.redis.execute_one(("HGET", broker.keys.of(queue).jobs, job_id), resend=True) or b""
    return stored.has_body(record, body)


def _ready_ms(record: bytes) -> int:
    header, _ = stored.read_head(record[:400])
    return header.ready_ms if header else 0
