"""Dead letters grouped by error."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, TypeAlias

from django_rtq.console.merging import EVERY, LEAST, SUM
from django_rtq.console.reading.jobs.job_filter import read_dead_letter
from django_rtq.console.reading.queues import QueueReader
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command, Packet
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment

DEPTH = 10_000  # dead letters of a queue that groups() reads, unless told otherwise
GROUPED_AT_ONCE = 250  # dead letters that one script groups; Redis serves nobody else meanwhile
HEADS_AT_ONCE = 100  # groups whose messages one script reads
KEPT_SECONDS = 60.0  # then all groups are read again: one that left and one that came at once were not noticed
GROUPED_PER_ROUND_TRIP = 1000  # dead letters that the scripts of one round trip group
_GROUP_BYTES = 4000  # read of the newest record of a group


#: A group of a queue, by its newest dead letter -> the message of that.
_Messages: TypeAlias = dict[tuple[str, str, datetime], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of one task with one class of error."""

    task: str
    error_class: str
    count: int = field(metadata=SUM)
    first_at: datetime = field(metadata=LEAST)
    last_at: datetime
    newest_id: str
    message: str  # of the newest, truncated
    #: That have some, if all are read at once; that of the newest is the first.
    shards: Sequence[int] = field(default=(), metadata=EVERY)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    """The groups of a queue, the largest first."""

    groups: list[DeadGroup] = field(default_factory=list)
    searched: int = field(default=0, metadata=SUM)  # how many of the newest dead letters were read
    total: int = field(default=0, metadata=SUM)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The groups of a queue as they were read."""

    total: int
    newest: tuple[bytes, ...]  # the newest dead letter and when it died; () if there is none
    at: float  # time.monotonic() of the first of the parts
    parts: list[DeadGroups]
    is_exact: bool = True  # nothing changed while they were read

    def has_only_grown(self, total: int, newest: Sequence[bytes], rank: int | None, most: int) -> bool:
        """Whether fewer than `most` have died since, and none has left. `rank`: how many are newer than self.newest."""
        if rank == 0 and self.newest != tuple(newest):
            return False  # it was requeued and has died again
        return rank is not None and rank == total - self.total < most


class DeadLetters:
    """Groups dead letters. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis, self._keys = broker.redis, broker.keys
        self._known: dict[str, _Grouped] = {}  # what the last call found; replaced, never changed
        self._known_depth = 0
        self._messages: _Messages = {}

    def groups(self, queue: str, depth: int = DEPTH) -> DeadGroups:
        """Group the newest dead letters of a queue by task and class of error."""
        of_queue = self._groups([queue], depth)[queue]
        groups = self.with_messages([(queue, group) for group in of_queue.groups])
        return replace(of_queue, groups=[group for _, group in groups])

    def all_groups(self, depth: int = DEPTH) -> dict[str, DeadGroups]:
        """groups() of every queue, without messages: see with_messages().

        Only queues are read in which jobs have died, or from which dead letters were taken, since the last call. Two
        round trips if nothing has changed.
        """
        return self._groups(QueueReader(self._broker).names(), depth)

    def with_messages(self, groups: Sequence[tuple[str, DeadGroup]]) -> list[tuple[str, DeadGroup]]:
        """The same groups of some queues, with the message of the newest dead letter of each."""
        messages, unread = self._messages, [pair for pair in groups if _newest_of(pair) not in self._messages]
        for start in range(0, len(unread), HEADS_AT_ONCE):
            messages = messages | self._read_messages(unread[start : start + HEADS_AT_ONCE])
        self._messages = {_newest_of(pair): messages[_newest_of(pair)] for pair in groups}
        complete = []
        for queue, group in groups:
            complete.append((queue, replace(group, message=messages[_newest_of((queue, group))])))
        return complete

    def _read_messages(self, groups: Sequence[tuple[str, DeadGroup]]) -> _Messages:
        by_queue = [(queue, list(pairs)) for queue, pairs in groupby(groups, key=lambda pair: pair[0])]
        calls = [
            SCRIPTS["failure_heads"].call(
                self._keys.of(queue), (_GROUP_BYTES, *(group.newest_id for _, group in pairs))
            )
            for queue, pairs in by_queue
        ]
        messages: _Messages = {}
        for (_, pairs), heads in zip(by_queue, self._redis.execute(calls, resend=True), strict=True):
            messages |= {_newest_of(pair): _message(*head) for pair, (_, *head) in zip(pairs, heads, strict=True)}
        return messages

    def _groups(self, queues: Sequence[str], depth: int) -> dict[str, DeadGroups]:
        known, now = self._known if self._known_depth == depth else {}, time.monotonic()
        packet = Packet()
        for queue in queues:
            packet.add(queue, *self._look(queue, known.get(queue)))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        grouped: dict[str, _Grouped] = {}
        sizes: dict[str, int] = {}  # queue -> how many of its newest dead letters are read
        for queue in queues:
            (total, newest, rank), before = replies[queue], known.get(queue)
            grouped[queue] = _Grouped(total, tuple(newest), now, [])
            sizes[queue] = min(depth, total)
            if before and now - before.at < KEPT_SECONDS and before.has_only_grown(total, newest, rank, depth):
                grouped[queue], sizes[queue] = replace(grouped[queue], at=before.at, parts=before.parts), rank
        self._read_groups(grouped, sizes)
        self._known, self._known_depth = {queue: of for queue, of in grouped.items() if of.is_exact}, depth
        return {queue: _add_up(of_queue) for queue, of_queue in grouped.items()}

    def _look(self, queue: str, known: _Grouped | None) -> list[Command]:
        dead, newest = self._keys.of(queue).dead, known.newest[0] if known and known.newest else ""
        return [("ZCARD", dead), ("ZREVRANGE", dead, 0, 0, "WITHSCORES"), ("ZREVRANK", dead, newest)]

    def _read_groups(self, found: dict[str, _Grouped], sizes: Mapping[str, int]) -> None:
        """Read the groups of so many of the newest dead letters, in front of those that are known."""
        asked = [(queue, at) for queue, size in sizes.items() for at in range(0, size, GROUPED_AT_ONCE)]
        parts: dict[str, list[DeadGroups]] = {}
        for packet in _packets(asked, sizes):
            calls = [
                SCRIPTS["dead_groups"].call(
                    self._keys.of(queue), (at, min(GROUPED_AT_ONCE, sizes[queue] - at), _GROUP_BYTES, "", "")
                )
                for queue, at in packet
            ]
            for (queue, _), reply in zip(packet, self._redis.execute(calls, resend=True), strict=True):
                parts.setdefault(queue, []).append(read_groups(queue, [reply]))
        for queue, read in parts.items():
            grouped = found[queue]
            is_exact = all(part.total == grouped.total for part in read)
            found[queue] = replace(grouped, parts=[_merged([*read, *grouped.parts])], is_exact=is_exact)

    def task_groups_command(self, queue: str, task: str, depth: int) -> Command:
        """The command for read_groups(): groups of one task among the newest dead letters, GROUPED_AT_ONCE at most."""
        arguments = (0, min(GROUPED_AT_ONCE, depth), _GROUP_BYTES, task, "1")
        return SCRIPTS["dead_groups"].call(self._keys.of(queue), arguments)


def _packets(asked: Sequence[tuple[str, int]], most: Mapping[str, int]) -> list[list[tuple[str, int]]]:
    """Split into round trips: Redis serves nobody else between small commands that arrive together."""
    packets: list[list[tuple[str, int]]] = []
    weight = 0
    for queue, start in asked:
        letters = min(GROUPED_AT_ONCE, most[queue] - start)
        # An empty queue costs next to nothing.
        if not packets or weight + letters > GROUPED_PER_ROUND_TRIP + len(most):
            packets.append([])
            weight = 0
        packets[-1].append((queue, start))
        weight += letters
    return packets


def read_groups(queue: str, replies: Sequence[Any]) -> DeadGroups:
    """Add up the replies of the script `dead_groups` for the parts of a queue, the newest part first."""
    return _merged([_read_part(queue, reply) for reply in replies])


def _read_part(queue: str, reply: Sequence[Any]) -> DeadGroups:
    total, *entries = reply
    groups = []
    for count, first, last, newest_id, task, error_class, record, failure in entries:
        name, class_name = task.decode(errors="replace"), error_class.decode(errors="replace")
        if record or failure:
            newest = read_dead_letter(queue, b"", record, failure)
            name, class_name = newest.task, newest.newest_error[0]
        group = DeadGroup(
            task=name,
            error_class=class_name,
            count=count,
            first_at=clock_moment(float(first)),
            last_at=clock_moment(float(last)),
            newest_id=newest_id.decode(errors="replace"),
            message=_message(record, failure),
        )
        groups.append(group)
    return DeadGroups(groups=groups, searched=sum(group.count for group in groups), total=total)


def _message(record: bytes, failure: bytes) -> str:
    """The message, from the beginnings of a record and of its newest failure."""
    return read_dead_letter("", b"", record, failure).newest_error[1]


def _merged(parts: Sequence[DeadGroups]) -> DeadGroups:
    """Add up the groups of the parts of a queue, the newest part first."""
    merged: dict[tuple[str, str], DeadGroup] = {}
    for part in parts:
        for group in part.groups:
            key = (group.task, group.error_class)
            merged[key] = _both(merged[key], group) if key in merged else group
    return DeadGroups(
        groups=sorted(merged.values(), key=lambda group: (-group.count, group.task, group.error_class)),
        searched=sum(part.searched for part in parts),
        total=parts[0].total if parts else 0,
    )


def _add_up(each: _Grouped) -> DeadGroups:
    return replace(_merged(each.parts), total=each.total)


def _newest_of(pair: tuple[str, DeadGroup]) -> tuple[str, str, datetime]:
    queue, group = pair
    return queue, group.newest_id, group.last_at


def _both(newer: DeadGroup, older: DeadGroup) -> DeadGroup:
    return replace(newer, count=newer.count + older.count, first_at=min(newer.first_at, older.first_at))
