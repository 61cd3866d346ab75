"""Dead letters grouped by error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from django_rtq.console.merging import EVERY, LEAST, SUM, by, joined, merge_by
from django_rtq.console.reading.queues import QueueReader, ask, packets
from django_rtq.console.reading.selection import Selection
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails, read_found
from django_rtq.core.jobs.failure import read_cut_failure
from django_rtq.core.jobs.job import JobState, clock_moment, shard_in
from django_rtq.core.jobs.record import read_head

DEPTH = 10_000  # dead letters of a queue that are grouped, unless told otherwise
GROUPED_AT_ONCE = 250  # dead letters that one script groups; Redis serves nobody else meanwhile
GROUPED_PER_ROUND_TRIP = 1000  # dead letters that the scripts of one round trip group
_GROUP_BYTES = 4000  # read of the newest record of a group


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of a queue, of one task with one class of error."""

    queue: str
    task: str
    error_class: str
    count: int = field(metadata=SUM)
    first_at: datetime = field(metadata=LEAST)
    last_at: datetime
    newest_id: str
    message: str  # of the newest, truncated
    shards: Sequence[int] = field(default=(), metadata=EVERY)  # that have some

    @property
    def is_known(self) -> bool:
        """Whether both have names: or else a filter would match other groups as well."""
        return bool(self.task and self.error_class)

    @property
    def wanted(self) -> Selection:
        """What finds them."""
        task = self.task and f"={self.task}"
        return Selection(queues=[self.queue], states=["dead"], task=task, error_class=self.error_class)


def merged_groups(lists: Iterable[Iterable[DeadGroup]]) -> list[DeadGroup]:
    """Those of one queue, task and error are one. The latest first."""
    return _latest_first(merge_by("queue task error_class", _latest_first(joined(lists))))


def _latest_first(groups: Iterable[DeadGroup]) -> list[DeadGroup]:
    return sorted(groups, key=attrgetter("last_at"), reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    """The groups of all queues, the latest first."""

    groups: list[DeadGroup] = field(metadata=by(merged_groups))
    searched: int = field(metadata=SUM)  # how many of the newest dead letters were read
    total: int = field(metadata=SUM)


class DeadLetters:
    """Groups dead letters. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis, self._keys = broker.redis, broker.keys
        #: Queue -> what the last call has seen of it, and its groups; replaced, never changed.
        self._kept: dict[str, tuple[Sequence[Any], list[DeadGroup]]] = {}

    def all_groups(self, depth: int = DEPTH) -> DeadGroups:
        """Group the newest dead letters of each queue by task and class of error, without messages: with_messages().

        Only queues are read in which jobs have died, or from which dead letters were taken, since the last call. Two
        round trips if nothing has changed.
        """
        keys, kept = {queue: self._keys.of(queue).dead for queue in QueueReader(self._broker).names()}, self._kept
        replies = ask(
            self._redis,
            {queue: [("ZCARD", dead), ("ZREVRANGE", dead, 0, 0, "WITHSCORES")] for queue, dead in keys.items()},
        )
        seen = {queue: [depth, *reply] for queue, reply in replies.items()}
        same = {queue: kept[queue] for queue in keys if queue in kept and kept[queue][0] == seen[queue]}
        read = self._read({queue: min(depth, replies[queue][0]) for queue in keys if queue not in same})
        self._kept = same | {queue: (seen[queue], groups) for queue, groups in read.items()}
        groups = _latest_first(joined(of_queue for _, of_queue in self._kept.values()))
        total = sum(size for size, _newest in replies.values())
        return DeadGroups(groups=groups, searched=sum(group.count for group in groups), total=total)

    def with_messages(self, groups: Sequence[DeadGroup]) -> list[DeadGroup]:
        """The groups of a page, with the message of the newest dead letter of each. One round trip."""
        calls = [SCRIPTS["find_job"].call(self._keys.of(group.queue), (group.newest_id,)) for group in groups]
        replies = self._redis.execute(calls, resend=True) if calls else []
        jobs = [read_found(group.newest_id, group.queue, reply) for group, reply in zip(groups, replies, strict=True)]
        return [
            replace(group, message=job.newest_error[1] if job else "") for group, job in zip(groups, jobs, strict=True)
        ]

    def _read(self, sizes: Mapping[str, int]) -> dict[str, list[DeadGroup]]:
        """The groups of so many of the newest dead letters of each queue."""
        asked = {
            (queue, at): min(GROUPED_AT_ONCE, size - at)
            for queue, size in sizes.items()
            for at in range(0, size, GROUPED_AT_ONCE)
        }
        parts: dict[str, list[list[DeadGroup]]] = {queue: [] for queue in sizes}
        for packet in packets(asked, GROUPED_PER_ROUND_TRIP):
            calls = [
                SCRIPTS["dead_groups"].call(self._keys.of(queue), (at, asked[queue, at], _GROUP_BYTES, "", ""))
                for queue, at in packet
            ]
            for (queue, _), reply in zip(packet, self._redis.execute(calls, resend=True), strict=True):
                parts[queue].append(read_groups(queue, reply))
        return {queue: merged_groups(of_queue) for queue, of_queue in parts.items()}

    def task_groups_command(self, queue: str, task: str, depth: int) -> Command:
        """The command for read_groups(): groups of one task among the newest dead letters, GROUPED_AT_ONCE at most."""
        arguments = (0, min(GROUPED_AT_ONCE, depth), _GROUP_BYTES, task, "1")
        return SCRIPTS["dead_groups"].call(self._keys.of(queue), arguments)


def read_groups(queue: str, reply: Sequence[Any]) -> list[DeadGroup]:
    """Read the reply of the script `dead_groups`."""
    groups = []
    for count, first, last, newest_id, task, error_class, record, failure in reply[1:]:
        newest = read_dead_letter(queue, newest_id, record, failure)
        kind, message = newest.newest_error
        group = DeadGroup(
            queue=queue,
            task=newest.task or task.decode(errors="replace"),
            error_class=kind or error_class.decode(errors="replace"),
            count=count,
            first_at=clock_moment(float(first)),
            last_at=clock_moment(float(last)),
            newest_id=newest.id,
            message=message,
            shards=(shard_in(newest.id),),
        )
        groups.append(group)
    return groups


def read_dead_letter(queue: str, job_id: bytes, record: bytes, failure: bytes) -> JobDetails:
    """A dead letter, as far as the beginnings of its record and of its newest failure say."""
    client, task = read_head(record)
    return JobDetails(
        id=job_id.decode(errors="replace"),
        queue=queue,
        state=JobState.DEAD,
        task=task,
        client=client or "",
        errors=[read_cut_failure(failure)],
    )
