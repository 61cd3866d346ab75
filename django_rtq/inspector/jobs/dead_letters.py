"""Many dead letters at once: grouped by error, counted, and requeued or discarded in bounded steps.

A bulk action works on a snapshot: it leaves out jobs that died after `until_ms`, even if they had died before and were
requeued meanwhile. The admin, rtq_jobs and the internal task all use Inspector.bulk_steps() and run_steps().
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import clock_ms
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerError
from django_rtq.inspector.details import JobDetails
from django_rtq.inspector.jobs.job_filter import (
    ALL_JOBS,
    AT_ONCE,
    SCRIPTS_PER_ROUND_TRIP,
    JobFilter,
    RedisJobFilter,
    read_dead_letter,
)
from django_rtq.inspector.jobs.job_list import JobSearch
from django_rtq.inspector.jobs.job_refs import decode_cursor, encode_cursor
from django_rtq.inspector.queues import QueueReader
from django_rtq.jobs import serializer
from django_rtq.jobs.job import clock_moment
from django_rtq.jobs.record import check_body, read_leniently

DEPTH = 10_000  # dead letters of a queue that groups() reads, unless told otherwise
MAX_COUNTED = 100_000  # dead letters that select() searches, unless told otherwise
STEP = 1000  # dead letters that one step of a bulk action searches
IDS_AT_ONCE = 100  # ids that one step of a bulk action on given ids takes
GROUPED_AT_ONCE = 250  # dead letters that one script groups; Redis serves nobody else meanwhile
GROUPED_PER_ROUND_TRIP = 1000  # dead letters that the scripts of one round trip group
LATEST = 10**15  # a moment after any death, in ms
_GROUP_BYTES = 4000  # read of the newest record of a group: its arguments are needed to hide its secrets

BulkAction = Literal["requeue", "discard"]


class Act(Protocol):
    """Inspector.requeue or Inspector.discard. Returns the ids that it acted on."""

    def __call__(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of one task with one class of error."""

    task: str
    error_class: str
    count: int
    first_at: datetime
    last_at: datetime
    message: str  # of the newest, truncated
    call: dict[str, Any] | None = field(default_factory=dict)  # of the newest; None: too long to be read here


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    """The groups of a queue, the largest first."""

    groups: list[DeadGroup] = field(default_factory=list)
    searched: int = 0  # how many of the newest dead letters were read
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How many dead letters match a filter, and the moment of that snapshot."""

    count: int
    searched: int
    total: int  # dead letters up to that moment
    until_ms: int  # jobs that die later do not belong to the snapshot

    @property
    def is_complete(self) -> bool:
        """Whether all dead letters were searched."""
        return self.searched >= self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """What a bulk action did: in one step, or in all steps together."""

    done: list[str] = field(default_factory=list)  # ids
    left_out: int = 0  # how many an undo could not put back
    refused: int = 0  # how many others it found and did nothing with
    cursor: str = ""  # where the next step begins; "": there is none
    stopped_by: BrokerError | KeyboardInterrupt | None = None  # what was done before stays done

    @property
    def is_complete(self) -> bool:
        """Whether no step is left."""
        return not self.cursor and self.stopped_by is None


class DeadLetters:
    """Searches dead letters. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis, self._keys = broker.redis, broker.keys
        self._sizes: dict[str, int] = {}  # queue -> how many dead letters it had the last time

    def groups(self, queue: str, depth: int = DEPTH) -> DeadGroups:
        """Group the newest dead letters of a queue by task and class of error: one round trip, the first time two."""
        return self._groups([queue], depth)[queue]

    def all_groups(self, depth: int = DEPTH) -> dict[str, DeadGroups]:
        """groups() of every queue: two round trips, the first time three."""
        return self._groups(QueueReader(self._broker).names(), depth)

    def _groups(self, queues: Sequence[str], depth: int) -> dict[str, DeadGroups]:
        parts: dict[str, list[Any]] = {queue: [] for queue in queues}
        while True:
            # The size of the last call saves the round trip that would count them.
            most = {queue: max(1, min(depth, self._sizes.get(queue, 1))) for queue in queues}
            asked = [(q, at) for q in queues for at in range(len(parts[q]) * GROUPED_AT_ONCE, most[q], GROUPED_AT_ONCE)]
            if not asked:
                return {queue: read_groups(queue, replies) for queue, replies in parts.items()}
            for packet in _packets(asked, most):
                calls = [
                    SCRIPTS["dead_groups"].call(
                        self._keys.of(queue), (start, min(GROUPED_AT_ONCE, max(0, depth - start)), _GROUP_BYTES, "")
                    )
                    for queue, start in packet
                ]
                for (queue, _), reply in zip(packet, self._redis.execute(calls, resend=True), strict=True):
                    parts[queue].append(reply)
                    self._sizes[queue] = reply[0]

    def select(
        self,
        queue: str,
        filter: JobFilter = ALL_JOBS,
        *,
        until_ms: int | None = None,
        depth: int = MAX_COUNTED,
        show: Callable[[int], object] | None = None,
    ) -> Selection:
        """Count the dead letters that match and died up to a moment; None: up to now. A bulk action begins with this.

        Searches up to `depth` of them, the oldest first; without a filter the number is always exact. `show` is called
        with the number so far, while there is more to count.
        """
        dead = self._keys.of(queue).dead
        if until_ms is None:
            until_ms = self._newest_ms(queue)
        total = self._redis.execute_one(("ZCOUNT", dead, "-inf", until_ms), resend=True)
        if not filter:
            return Selection(count=total, searched=total, total=total, until_ms=until_ms)
        searched = min(depth, total)
        count = RedisJobFilter(self._redis, self._keys.of(queue), filter).count_dead(0, searched, show)
        return Selection(count=count, searched=searched, total=total, until_ms=until_ms)

    def count_in_queues(self, sizes: Mapping[str, int], filter: JobFilter) -> tuple[dict[str, int], int]:
        """Count the dead letters that match in these queues, and find when the newest of all died, ms.

        `sizes` tells how many dead letters each queue has. One round trip for the moment, and one for each 200 dead
        letters. It searches up to MAX_COUNTED of each queue, the oldest first.
        """
        newest = [("ZREVRANGE", self._keys.of(queue).dead, 0, 0, "WITHSCORES") for queue in sizes]
        found = self._redis.execute(newest, resend=True) if newest else []
        until_ms = max((math.ceil(float(pair[1])) for pair in found if pair), default=0)
        counts = dict.fromkeys(sizes, 0)
        for packet in _parts(sizes):
            calls = [
                SCRIPTS["count_matching"].call(
                    self._keys.of(queue), (*filter.script_arguments(times=True), filter.id, start, most)
                )
                for queue, start, most in packet
            ]
            for (queue, *_), reply in zip(packet, self._redis.execute(calls, resend=True), strict=True):
                _, fitting, doubtful = reply
                counts[queue] += fitting + sum(filter.fits_heads(*heads) for _, *heads in doubtful)
        return {queue: count for queue, count in counts.items() if count}, until_ms

    def next_ids(self, queue: str, filter: JobFilter, until_ms: int, cursor: str, limit: int) -> tuple[list[str], str]:
        """Search the next `limit` dead letters, the oldest first. Returns the ids that match, and the next cursor."""
        limit = max(1, min(limit, 10 * STEP))
        at = decode_cursor(cursor)
        search = JobSearch(self._broker, queue, "dead")
        pairs, is_last = search.read_scored("dead", at, limit, is_newest_first=False, most=until_ms)
        if pairs:
            at = (pairs[-1][0], pairs[-1][1].decode())
        ids = [job_id for died, job_id in pairs if filter.fits_place(job_id.decode(), clock_moment(died))]
        fitting = RedisJobFilter(self._redis, self._keys.of(queue), filter).matching(ids) if filter else set(ids)
        return [job_id.decode() for job_id in ids if job_id in fitting], "" if is_last else encode_cursor(at)

    def task_groups_command(self, queue: str, task: str, depth: int) -> Command:
        """The command for read_groups(): groups of one task among the newest dead letters, GROUPED_AT_ONCE at most."""
        arguments = (0, min(GROUPED_AT_ONCE, depth), _GROUP_BYTES, task)
        return SCRIPTS["dead_groups"].call(self._keys.of(queue), arguments)

    # -- inside

    def _newest_ms(self, queue: str) -> int:
        """When the newest dead letter died; without any, the time of the server.

        Not simply the server's time: while its clock is behind, jobs die after the moment that it shows.
        """
        newest = ("ZREVRANGE", self._keys.of(queue).dead, 0, 0, "WITHSCORES")
        time_reply, found = self._redis.execute([("TIME",), newest], resend=True)
        return math.ceil(float(found[1])) if found else clock_ms(time_reply)


def steps_for_ids(act: Act, queues: Iterable[str], job_ids: Sequence[str]) -> Iterator[BulkResult]:
    """Act on given jobs, each of which is in one of these queues, some of them in each step."""
    left = dict.fromkeys(job_ids)
    for queue in queues:
        ids = list(left)
        for start in range(0, len(ids), IDS_AT_ONCE):
            done = act(queue, ids[start : start + IDS_AT_ONCE])
            for job_id in done:
                del left[job_id]
            yield BulkResult(done=done)


def run_steps(
    steps: Iterable[BulkResult], *, seconds: float = math.inf, show: Callable[[int], object] | None = None
) -> BulkResult:
    """Run the steps of a bulk action, to the end or for about so many seconds, and add them up.

    Errors do not hide what was done before: they are part of the result. `show` is called with the number so far.
    """
    ends, done, left_out, refused, cursor = time.monotonic() + seconds, [], 0, 0, ""
    try:
        for step in steps:
            done += step.done
            left_out += step.left_out
            refused += step.refused
            cursor = step.cursor
            if show is not None:
                show(len(done))
            if time.monotonic() > ends:
                break
    except (BrokerError, KeyboardInterrupt) as error:
        return BulkResult(done=done, left_out=left_out, refused=refused, cursor=cursor, stopped_by=error)
    return BulkResult(done=done, left_out=left_out, refused=refused, cursor=cursor)


def changed_body(job: JobDetails, args: Sequence[Any], kwargs: Mapping[str, Any], *, most_bytes: int) -> str:
    """The record of a job with other arguments, without its header. Raises Unserializable and PayloadTooLarge."""
    call = {"args": list(args), "kwargs": dict(kwargs), "headers": job.headers}
    given = {name: value for name, value in call.items() if value}
    body = serializer.dumps({"task": job.task, **given, **job.options}, what=f"the call of {job.task}")
    check_body(job.task, body, most_bytes)
    return body


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


def _parts(sizes: Mapping[str, int]) -> list[list[tuple[str, int, int]]]:
    """Parts of the lists of queues, as (queue, position, how many), for each round trip."""
    packets: list[list[tuple[str, int, int]]] = []
    weight = 0
    for queue, size in sizes.items():
        searched = min(size, MAX_COUNTED)
        for start in range(0, searched, AT_ONCE):
            most = min(AT_ONCE, searched - start)
            if not packets or weight + most > AT_ONCE * SCRIPTS_PER_ROUND_TRIP:
                packets.append([])
                weight = 0
            packets[-1].append((queue, start, most))
            weight += most
    return packets


def read_groups(queue: str, replies: Sequence[Any]) -> DeadGroups:
    """Add up the replies of the script `dead_groups` for the parts of a queue, the newest part first."""
    found: dict[tuple[str, str], DeadGroup] = {}
    for _, *entries in replies:
        for count, first, last, record, failure in entries:
            newest, call = read_dead_letter(queue, b"", record, failure), read_leniently(record)[1]
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
