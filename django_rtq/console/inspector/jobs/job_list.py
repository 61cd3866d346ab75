"""Pages of jobs: some jobs of a queue in one state, and a cursor to the next page.

A cursor names the last job that was seen, not a position: jobs that come and go meanwhile shift nothing. Without a
filter a page takes two round trips; with one, as many as there are batches to search, up to a depth.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django_rtq.console.inspector.jobs.filtered_search import FilteredSearch
from django_rtq.console.inspector.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.console.inspector.jobs.job_refs import (
    DEPTH,
    LONGEST_PAGE,
    JobPage,
    JobRef,
    check_list,
    decode_cursor,
    encode_cursor,
    read_commands,
    read_jobs,
)
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import Argument, Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails

_BATCH = 500  # scheduled jobs that are read at once: those that are retrying have a list of their own


class JobListReader:
    """Reads lists of jobs. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def page(
        self,
        queue: str,
        state: str,
        *,
        cursor: str = "",
        limit: int = 50,
        filter: JobFilter = ALL_JOBS,
        depth: int = DEPTH,
    ) -> JobPage:
        """Up to `limit` jobs that match. The state is one of LISTS: see there for the order. Raises ValueError."""
        if filter:
            return FilteredSearch(self._broker, [(queue, state)], filter).page(cursor, limit, depth)
        return JobSearch(self._broker, queue, state).page(cursor, limit, depth)

    def search(
        self,
        lists: Sequence[tuple[str, str]],
        filter: JobFilter,
        *,
        sizes: Mapping[tuple[str, str], int],
        shown: Callable[[JobDetails], JobDetails],
    ) -> FilteredSearch:
        """A search of several lists, each a queue and a state: see FilteredSearch."""
        return FilteredSearch(self._broker, lists, filter, sizes=sizes, shown=shown)

    def each(
        self,
        queue: str,
        state: str,
        filter: JobFilter = ALL_JOBS,
        *,
        at_once: int = MAINTAIN_AT_ONCE,
    ) -> Iterator[JobDetails]:
        """All jobs that match, page by page: see LISTS for the states and the order. Raises ValueError.

        They may change their state while this goes on; jobs that come meanwhile may be left out.
        """
        cursor = ""
        while True:
            page = self.page(queue, state, cursor=cursor, limit=at_once, filter=filter)
            yield from page.jobs
            cursor = page.next_cursor
            if not cursor:
                return


class JobSearch:
    """Reads one list of one queue, without a filter. For one thread.

    The commands in `also` are sent with its first round trip; their replies are in `replies` afterwards.
    """

    def __init__(self, broker: Broker, queue: str, state: str, *, also: Sequence[Command] = ()) -> None:
        check_list(state)
        self._redis: RedisClient = broker.redis
        self._keys = broker.keys.of(queue)
        self._queue, self._state = queue, state
        self._also = list(also)
        self.replies: list[Any] = []

    def page(self, cursor: str, limit: int, depth: int = DEPTH) -> JobPage:
        """Up to `limit` jobs, after reading up to `depth`."""
        limit, at = max(1, min(limit, LONGEST_PAGE)), decode_cursor(cursor)
        size = _BATCH if self._state == "scheduled" else limit
        jobs: list[JobDetails] = []
        places: list[tuple[Sequence[Any], int]] = []
        searched = 0
        while searched < depth:
            refs, behind, rest = self._read_refs(at, min(size, depth - searched))
            for ref, job in self.read(refs):
                searched, at = searched + 1, ref.cursor
                if job is not None:
                    jobs.append(job)
                    places.append((at, searched))
                if len(jobs) == limit:
                    is_end = rest != "more" and ref is refs[-1]
                    cursor = "" if is_end else encode_cursor(at)
                    return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, places=places)
            if rest != "more":
                return JobPage(jobs=jobs, searched=searched, is_complete=rest == "all", places=places)
            if not refs:  # nothing here, but there may be more behind
                at = behind
        cursor = encode_cursor(at)
        return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, is_complete=False, places=places)

    def read(self, refs: Sequence[JobRef]) -> list[tuple[JobRef, JobDetails | None]]:
        """The jobs, in one round trip; None for a job that is not in this state any more."""
        if not refs:
            return []
        commands = read_commands(self._keys, self._state, [ref.job_id for ref in refs])
        replies = self._redis.execute(commands, resend=True)
        return list(zip(refs, read_jobs(self._queue, self._state, refs, replies), strict=True))

    def read_scored(
        self, name: str, at: tuple[Any, ...], size: int, *, is_newest_first: bool, most: Argument = "+inf"
    ) -> tuple[list[tuple[float, bytes]], bool]:
        """Members of a sorted set behind a cursor (score, id), with their scores, and whether they are the last."""
        key = getattr(self._keys, name)
        first: Argument
        verb, is_behind, first, last = "ZRANGEBYSCORE", operator.gt, "-inf", most
        if is_newest_first:
            verb, is_behind, first, last = "ZREVRANGEBYSCORE", operator.lt, most, "-inf"
        cursor, wanted = None, size
        if len(at) == 2:
            cursor = (float(at[0]), str(at[1]).encode())
            first, size = repr(cursor[0]), size + 1  # the member of the cursor may still be there
        while True:
            flat = self._execute_one((verb, key, first, last, "WITHSCORES", "LIMIT", 0, size))
            pairs = [(float(score), member) for member, score in zip(flat[::2], flat[1::2], strict=True)]
            fresh = [pair for pair in pairs if cursor is None or is_behind(pair, cursor)]
            if fresh or len(pairs) < size:
                return fresh[:wanted], len(pairs) < size and len(fresh) <= wanted
            size *= 2  # more members share a score than were read

    # -- inside

    def _execute_one(self, command: Command) -> Any:
        """Send a command; the first one together with those that were given as `also`."""
        if not self._also:
            return self._redis.execute_one(command, resend=True)
        *self.replies, reply = self._redis.execute([*self._also, command], resend=True)
        self._also = []
        return reply

    def _read_refs(self, at: tuple[Any, ...], size: int) -> tuple[list[JobRef], tuple[Any, ...], str]:
        """Some jobs behind a cursor, where to go on if there are none, and how the list ends: more, all or cut."""
        state = self._state
        if state == "queued":
            return self._read_queued(at, size)
        if state == "running":
            return self._read_running(at, size)
        if state == "finished":
            return self._read_finished(at, size)
        pairs, is_last = self.read_scored(state, at, size, is_newest_first=state == "dead")
        return [_scored_ref(state, *pair) for pair in pairs], at, "all" if is_last else "more"

    def _read_queued(self, at: tuple[Any, ...], size: int) -> tuple[list[JobRef], tuple[Any, ...], str]:
        arguments = (*(at if len(at) == 5 else ("", "0", "", "", "0")), min(size, LONGEST_PAGE), "0")
        status, *lanes = self._execute_one(SCRIPTS["list_queued"].call(self._keys, arguments))
        places = [tuple(part.decode() for part in lane[:4]) for lane in lanes]
        refs = [
            JobRef(job_id, (*place[:3], job_id.decode(), str(int(place[3]) + number)))
            for place, (_, _, _, _, *ids) in zip(places, lanes, strict=True)
            for number, job_id in enumerate(ids)
        ]
        return refs, (*places[-1][:3], "", places[-1][3]), status.decode()

    def _read_finished(self, at: tuple[Any, ...], size: int) -> tuple[list[JobRef], tuple[Any, ...], str]:
        seen_ms, seen = at if len(at) == 2 else (0, "")
        arguments = (seen, int(seen_ms), min(size, MAINTAIN_AT_ONCE))
        status, *flat = self._execute_one(SCRIPTS["list_finished"].call(self._keys, arguments))
        pairs = zip(flat[::2], map(int, flat[1::2]), strict=True)
        refs = [JobRef(job_id, (ms, job_id.decode())) for job_id, ms in pairs]
        return refs, at, status.decode()

    def _read_running(self, at: tuple[Any, ...], size: int) -> tuple[list[JobRef], tuple[Any, ...], str]:
        now_ms, *entries = self._execute_one(SCRIPTS["list_running"].call(self._keys, (2000, 0)))
        refs = []
        for worker, lease_ms, _, *held in entries:
            by = {"worker": worker, "lease": b"%d" % (now_ms + lease_ms), "now_ms": now_ms}
            for job_id, claim, _, wish, progress in held:
                cursor = (int(claim.split(b" ")[1]), job_id.decode())
                run = {"held": claim, "wish": wish, "progress": progress}
                refs.append(JobRef(job_id, cursor, {**by, **run}))
        refs.sort(key=lambda ref: ref.cursor)
        behind = [ref for ref in refs if len(at) != 2 or ref.cursor > (float(at[0]), str(at[1]))]
        return behind[:size], at, "all" if len(behind) <= size else "more"


def _scored_ref(state: str, score: float, job_id: bytes) -> JobRef:
    name = "died" if state == "dead" else "due"
    return JobRef(job_id, (score, job_id.decode()), {name: b"%d" % score})
