"""Dead letters in great numbers: in groups, counted, and swept up in bounded steps.

A sweep acts on a snapshot: who died after `until_ms` is not meant, even if it was dead before and was requeued since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import clock_ms
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.job_filter import RedisJobFilter, read_letter
from django_rtq.inspector.job_list import JobFilter, JobListReader, packed, unpacked
from django_rtq.jobs import serializer
from django_rtq.jobs.job import clock_moment
from django_rtq.jobs.record import check_body, read_leniently

MOST_DEAD = 100_000  # that are looked through to be counted
STEP = 1000  # dead letters that one step looks at
GROUPED = 250  # that one script adds up; others wait for Redis meanwhile
TOGETHER = 1000  # that the scripts of one round trip add up
LATEST = 10**15  # later than any death
_GROUP_BYTES = 4000  # of the newest of a group: what it was called with is needed to hide its secrets

Action = Literal["requeue", "discard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of one task that died of one kind of error."""

    task: str
    error_class: str
    count: int
    first_at: datetime
    last_at: datetime
    message: str  # of the newest, its beginning
    call: dict[str, Any] | None = field(default_factory=dict)  # of the newest; None: it is too long to be read here


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    """All of them, the largest first."""

    groups: list[DeadGroup] = field(default_factory=list)
    searched: int = 0  # the newest so many were looked at
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How many dead letters are meant."""

    count: int
    searched: int
    total: int  # dead letters up to that moment
    until_ms: int  # who dies later is not meant

    @property
    def is_complete(self) -> bool:
        """Whether all were looked at."""
        return self.searched >= self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """One step of a sweep. It is over when the cursor is ""."""

    done: list[str] = field(default_factory=list)  # ids
    looked_at: int = 0
    cursor: str = ""


class DeadLetters:
    """Looks through dead letters. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys
        self._listing = JobListReader(broker)
        self._sizes: dict[str, int] = {}  # queue -> dead letters when it was asked last

    def groups(self, queues: Sequence[str], depth: int) -> dict[str, DeadGroups]:
        """The newest dead letters of each queue by task and kind of error."""
        parts: dict[str, list[Any]] = {queue: [] for queue in queues}
        while True:
            # How many there were last time spares a round trip to count them.
            most = {queue: max(1, min(depth, self._sizes.get(queue, 1))) for queue in queues}
            asked = [(q, at) for q in queues for at in range(len(parts[q]) * GROUPED, most[q], GROUPED)]
            if not asked:
                return {queue: _grouped(queue, replies) for queue, replies in parts.items()}
            for packet in _packets(asked, most):
                calls = [
                    SCRIPTS["inquest"].call(
                        self._keys.of(queue), (start, min(GROUPED, max(0, depth - start)), _GROUP_BYTES)
                    )
                    for queue, start in packet
                ]
                for (queue, _), reply in zip(packet, self._redis.execute(calls, resend=True), strict=True):
                    parts[queue].append(reply)
                    self._sizes[queue] = reply[0]

    def select(self, queue: str, wanted: JobFilter, until_ms: int | None, depth: int) -> Selection:
        """Count those that fit, the oldest first, up to a depth. Without a filter the number is exact."""
        dead = self._keys.of(queue).dead
        if until_ms is None:
            until_ms = clock_ms(self._redis.execute_one(("TIME",), resend=True))
        total = self._redis.execute_one(("ZCOUNT", dead, "-inf", until_ms), resend=True)
        if not wanted:
            return Selection(count=total, searched=total, total=total, until_ms=until_ms)
        searched = min(depth, total)
        count = RedisJobFilter(self._redis, self._keys.of(queue), wanted).muster(0, searched)
        return Selection(count=count, searched=searched, total=total, until_ms=until_ms)

    def chosen(
        self, queue: str, wanted: JobFilter, until_ms: int, cursor: str, limit: int
    ) -> tuple[list[str], int, str]:
        """The ids that fit among the next dead letters, how many were looked at, and where to go on."""
        limit = max(1, min(limit, 10 * STEP))
        pairs, at, is_last = self._next(queue, unpacked(cursor), limit, until_ms)
        ids = [job_id for died, job_id in pairs if wanted.fits_place(job_id.decode(), clock_moment(died))]
        fitting = RedisJobFilter(self._redis, self._keys.of(queue), wanted).sift(ids) if wanted else set(ids)
        chosen = [job_id.decode() for job_id in ids if job_id in fitting]
        return chosen, len(pairs), "" if is_last else packed(at)

    # -- inside

    def _next(self, queue: str, at: tuple[Any, ...], limit: int, until_ms: int) -> Any:
        key = self._keys.of(queue).dead
        pairs, is_last = self._listing.scored(key, at, limit, is_newest_first=False, most=until_ms)
        return pairs, (pairs[-1][0], pairs[-1][1].decode()) if pairs else at, is_last


def changed_body(job: JobDetails, args: Sequence[Any], kwargs: Mapping[str, Any], *, most_bytes: int) -> str:
    """The record of a job, without its header, with other arguments. Raises Unserializable and PayloadTooLarge."""
    call = {"args": list(args), "kwargs": dict(kwargs)}
    given = {name: value for name, value in call.items() if value}
    body = serializer.dumps({"task": job.task, **given, **job.options}, what=f"the call of {job.task}")
    check_body(job.task, body, most_bytes)
    return body


def _packets(asked: Sequence[tuple[str, int]], most: Mapping[str, int]) -> list[list[tuple[str, int]]]:
    """What goes out together: Redis serves nobody else between small commands that arrive together."""
    packets: list[list[tuple[str, int]]] = []
    weight = 0
    for queue, start in asked:
        letters = min(GROUPED, most[queue] - start)
        if not packets or weight + letters > TOGETHER + len(most):  # a queue without any costs next to nothing
            packets.append([])
            weight = 0
        packets[-1].append((queue, start))
        weight += letters
    return packets


def _grouped(queue: str, replies: Sequence[Any]) -> DeadGroups:
    """What the script `inquest` answers for the parts of a queue, the newest first, added up."""
    found: dict[tuple[str, str], DeadGroup] = {}
    for _, *entries in replies:
        for count, first, last, record, failure in entries:
            newest, call = read_letter(queue, b"", record, failure), read_leniently(record)[1]
            group = DeadGroup(
                task=newest.task,
                error_class=newest.newest_error[0],
                count=count,
                first_at=clock_moment(float(first)),
                last_at=clock_moment(float(last)),
                message=newest.newest_error[1],
                call=call if call or len(record) < _GROUP_BYTES else None,
            )
            key = (group.task, group.error_class)
            found[key] = _both(found[key], group) if key in found else group
    return DeadGroups(
        groups=sorted(found.values(), key=lambda group: (-group.count, group.task, group.error_class)),
        searched=sum(group.count for group in found.values()),
        total=replies[0][0] if replies else 0,
    )


def _both(newer: DeadGroup, older: DeadGroup) -> DeadGroup:
    return replace(newer, count=newer.count + older.count, first_at=min(newer.first_at, older.first_at))
