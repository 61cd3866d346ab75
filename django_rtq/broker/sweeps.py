"""Dead letters in great numbers: in groups, counted, and swept up in bounded steps.

A sweep acts on a snapshot: who died after `until_ms` is not meant, even if it was dead before and was requeued since.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from django_rtq import payload
from django_rtq.broker.broker import MAINTAIN_AT_ONCE, Broker
from django_rtq.broker.details import JobDetails, read_call, read_head, unquoted
from django_rtq.broker.listing import JobFilter, Listing, packed, unpacked
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.broker.wire import clock_ms
from django_rtq.job import JobState, check_size, clock_moment, moment

MOST_DEAD = 100_000  # that are looked through to be counted
STEP = 1000  # dead letters that one step looks at
GROUPED = 250  # that one script adds up; others wait for Redis meanwhile
TOGETHER = 1000  # that the scripts of one round trip add up
LATEST = 10**15  # later than any death
_BYTES = 1000  # that are read of a record, and of its newest failure
_GROUP_BYTES = 4000  # of the newest of a group: what it was called with is needed to hide its secrets
_CLASS = re.compile(r'"error_class":"([^"\\]*)"')
_MESSAGE = re.compile(r'"error":"((?:[^"\\]|\\.)*)')

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
class Swept:
    """One step of a sweep. It is over when the cursor is ""."""

    done: list[str] = field(default_factory=list)  # ids
    looked_at: int = 0
    cursor: str = ""


class Sweeper:
    """Looks through dead letters. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._wire, self._keys = broker.wire, broker.keys
        self._listing = Listing(broker)
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
                for (queue, _), reply in zip(packet, self._wire.all(calls, resend=True), strict=True):
                    parts[queue].append(reply)
                    self._sizes[queue] = reply[0]

    def select(self, queue: str, wanted: JobFilter, until_ms: int | None, depth: int) -> Selection:
        """Count those that fit, the oldest first, up to a depth. Without a filter the number is exact."""
        dead = self._keys.of(queue).dead
        if until_ms is None:
            until_ms = clock_ms(self._wire.one(("TIME",), resend=True))
        total = self._wire.one(("ZCOUNT", dead, "-inf", until_ms), resend=True)
        if not wanted:
            return Selection(count=total, searched=total, total=total, until_ms=until_ms)
        count, searched, at = 0, 0, ()
        while searched < min(depth, total):
            letters, at, is_last = self._step(queue, at, min(10 * STEP, depth - searched), until_ms)
            searched += len(letters)
            count += sum(map(wanted.fits, letters))
            if is_last:
                break
        return Selection(count=count, searched=searched, total=total, until_ms=until_ms)

    def chosen(
        self, queue: str, wanted: JobFilter, until_ms: int, cursor: str, limit: int
    ) -> tuple[list[str], int, str]:
        """The ids that fit among the next dead letters, how many were looked at, and where to go on."""
        limit = max(1, min(limit, 10 * STEP))
        if wanted:
            letters, at, is_last = self._step(queue, unpacked(cursor), limit, until_ms)
            return [x.id for x in letters if wanted.fits(x)], len(letters), "" if is_last else packed(at)
        pairs, at, is_last = self._next(queue, unpacked(cursor), limit, until_ms)
        return [job_id.decode() for _, job_id in pairs], len(pairs), "" if is_last else packed(at)

    # -- inside

    def _next(self, queue: str, at: tuple[Any, ...], limit: int, until_ms: int) -> Any:
        key = self._keys.of(queue).dead
        pairs, is_last = self._listing.scored(key, at, limit, is_newest_first=False, most=until_ms)
        return pairs, (pairs[-1][0], pairs[-1][1].decode()) if pairs else at, is_last

    def _step(
        self, queue: str, at: tuple[Any, ...], limit: int, until_ms: int
    ) -> tuple[list[JobDetails], tuple[Any, ...], bool]:
        pairs, at, is_last = self._next(queue, at, limit, until_ms)
        return self._letters(queue, [job_id for _, job_id in pairs]), at, is_last

    def _letters(self, queue: str, ids: Sequence[bytes]) -> list[JobDetails]:
        """These dead letters as far as a filter needs them. Each script by itself: others wait for Redis too."""
        letters: list[JobDetails] = []
        for start in range(0, len(ids), MAINTAIN_AT_ONCE):
            part = ids[start : start + MAINTAIN_AT_ONCE]
            reply = self._wire.one(SCRIPTS["autopsy"].call(self._keys.of(queue), (_BYTES, *part)), resend=True)
            letters += [_letter(queue, job_id, *dead) for job_id, dead in zip(part, reply, strict=True) if dead[0]]
        return letters


def changed_body(job: JobDetails, args: Sequence[Any], kwargs: Mapping[str, Any], *, most_bytes: int) -> str:
    """The record of a job, without its header, with other arguments. Raises Unserializable and PayloadTooLarge."""
    call = {"args": list(args), "kwargs": dict(kwargs)}
    given = {name: value for name, value in call.items() if value}
    body = payload.dumps({"task": job.task, **given, **job.options}, what=f"the call of {job.task}")
    check_size(job.task, body, most_bytes)
    return body


def _letter(queue: str, job_id: bytes, died: bytes, record: bytes, failure: bytes) -> JobDetails:
    header, task = read_head(record)
    text = failure.decode(errors="replace")
    kind, message = _CLASS.search(text), _MESSAGE.search(text)
    return JobDetails(
        id=job_id.decode(errors="replace"),
        queue=queue,
        state=JobState.DEAD,
        task=task,
        client=header.client if header else "",
        died_at=moment(int(float(died))),
        errors=[{"error_class": kind[1] if kind else "", "error": unquoted(message[1]) if message else ""}],
    )


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
            newest, call = _letter(queue, b"", last, record, failure), read_call(record)[1]
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
