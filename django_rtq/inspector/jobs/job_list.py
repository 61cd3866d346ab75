"""Pages of jobs: some jobs of a queue in one state, and a cursor to the next page.

A cursor names the last job that was seen, not a position: jobs that come and go meanwhile shift nothing. Without a
filter a page takes two round trips; with one, as many as there are batches to search, up to a depth.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.broker.redis.client import RedisClient, clock_ms
from django_rtq.broker.redis.commands import Argument, Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.details import JobDetails, RawJob
from django_rtq.inspector.jobs.job_filter import ALL_JOBS, JobFilter, RedisJobFilter
from django_rtq.jobs.job import clock_moment, held_since

LONGEST_PAGE = 500
DEPTH = 10_000  # jobs that a search with a filter reads at most
_BAND = re.compile(r"-?[0-9]{1,12}\+?")  # in cursors
_TURN = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?|inf")  # a score; inf: the client is blocked
_BATCH = 500  # jobs that a search with a filter reads in two round trips

#: The states that can be listed, and the order of each list. Queued: in the order of the clients' turns at this moment,
#: but all jobs of a client together, although they will be claimed in turn with those of others; of a lane the first
#: 10,000. Scheduled and retrying: what is due first; what paused tasks hold is last. Running: the oldest first. Dead:
#: the newest first. Finished: those whose outcome is kept, what finished last first.
LISTS = ("queued", "scheduled", "running", "retrying", "dead", "finished")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, and where the next page begins."""

    jobs: list[JobDetails] = field(default_factory=list)
    next_cursor: str = ""  # "": this was the last page
    searched: int = 0  # how many jobs were read for this page
    is_complete: bool = True  # False: the search reached its limit before the page was full


@dataclass(frozen=True, slots=True)
class JobRef:
    """What the list of a state knows of one of its jobs."""

    job_id: bytes
    cursor: tuple[Any, ...]  # the next page begins behind this
    known: Mapping[str, Any] = field(default_factory=dict)  # fields of RawJob
    at_ms: float | None = None  # when it died, is due, or finished; since when it waits, if its task is paused

    def may_fit(self, wanted: JobFilter) -> bool:
        """Whether its id and the moment that the list knows match."""
        if self.at_ms is None:
            return self.job_id.decode(errors="replace").startswith(wanted.id)
        return wanted.fits_place(self.job_id.decode(errors="replace"), clock_moment(self.at_ms))


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
        return JobSearch(self._broker, queue, state, filter).page(cursor, limit, depth)

    def each(
        self,
        queue: str,
        state: str,
        filter: JobFilter = ALL_JOBS,
        *,
        at_once: int = MAINTAIN_AT_ONCE,
        on_cut: Callable[[], object] | None = None,
    ) -> Iterator[JobDetails]:
        """All jobs that match, page by page: see LISTS for the states and the order. Raises ValueError.

        They may change their state while this goes on; jobs that come meanwhile may be left out. `on_cut` is called at
        the end if some lanes are so long that they were not read to the end.
        """
        cursor = ""
        while True:
            page = self.page(queue, state, cursor=cursor, limit=at_once, filter=filter)
            yield from page.jobs
            cursor = page.next_cursor
            if not cursor:
                if not page.is_complete and on_cut is not None:
                    on_cut()
                return


class JobSearch:
    """Searches one list of one queue. For one thread.

    The commands in `also` are sent with its first round trip; their replies are in `replies` afterwards.
    """

    def __init__(
        self, broker: Broker, queue: str, state: str, filter: JobFilter = ALL_JOBS, *, also: Sequence[Command] = ()
    ) -> None:
        if state not in LISTS:
            raise ValueError(f"{state!r} is not one of {', '.join(LISTS)}.")
        self._redis: RedisClient = broker.redis
        self._keys = broker.keys.of(queue)
        self._queue, self._state, self._filter = queue, state, filter
        self._also = list(also)
        self.replies: list[Any] = []

    def page(self, cursor: str, limit: int, depth: int = DEPTH) -> JobPage:
        """Up to `limit` jobs that match, after a search of up to `depth` jobs."""
        limit, at = max(1, min(limit, LONGEST_PAGE)), decode_cursor(cursor)
        size = _BATCH if self._filter or self._state == "scheduled" else limit
        jobs: list[JobDetails] = []
        searched = 0
        while searched < depth:
            refs, behind, rest = self._read_refs(at, min(size, depth - searched))
            for ref, job in self._read_matching(refs, limit) if self._filter else self.read(refs):
                searched, at = searched + 1, ref.cursor
                if job is not None and self._filter.fits(job):
                    jobs.append(job)
                if len(jobs) == limit:
                    is_end = rest != "more" and ref is refs[-1]
                    return JobPage(jobs=jobs, next_cursor="" if is_end else encode_cursor(at), searched=searched)
            if rest != "more":
                return JobPage(jobs=jobs, searched=searched, is_complete=rest == "all")
            if not refs:  # nothing here, but there may be more behind
                at = behind
        return JobPage(jobs=jobs, next_cursor=encode_cursor(at), searched=searched, is_complete=False)

    def read(self, refs: Sequence[JobRef]) -> Iterator[tuple[JobRef, JobDetails | None]]:
        """The jobs, in one round trip; None for a job that is not in this state any more."""
        if not refs:
            return
        keys, ids, state = self._keys, [ref.job_id for ref in refs], self._state
        hashes = [keys.jobs, keys.failures, keys.crashes, keys.errors]
        if state == "finished":
            hashes.append(keys.results)  # only here: a cancelled job that is still in its lane is not queued
        commands: list[Command] = [("HMGET", key, *ids) for key in hashes]
        if state == "finished":  # expired outcomes are not shown, although Redis may still have them
            commands.append(("TIME",))
        if state == "scheduled":
            commands.append(("ZMSCORE", keys.retrying, *ids))  # these have a list of their own
        found = self._redis.execute(commands, resend=True)
        now_ms = clock_ms(found.pop()) if state == "finished" else 0
        is_else = found.pop() if state == "scheduled" else [None] * len(refs)
        for ref, is_retrying, *values in zip(refs, is_else, *found, strict=True):
            yield ref, _raw_job(self._queue, ref, values, now_ms).details() if is_retrying is None else None

    def read_scored(
        self, name: str, at: tuple[Any, ...], size: int, *, is_newest_first: bool, most: Argument = "+inf"
    ) -> tuple[list[tuple[float, bytes]], bool]:
        """Members of a sorted set behind a cursor (score, id), with their scores, and whether they are the last."""
        key = getattr(self._keys, name)
        behind = (float(at[0]), str(at[1]).encode()) if len(at) == 2 else None
        wanted = size
        size += 1 if behind else 0  # the member of the cursor may still be there
        while True:
            if is_newest_first:
                edges: tuple[Argument, ...] = (most if behind is None else repr(behind[0]), "-inf")
                verb = "ZREVRANGEBYSCORE"
            else:
                edges = ("-inf" if behind is None else repr(behind[0]), most)
                verb = "ZRANGEBYSCORE"
            found = self._execute_one((verb, key, *edges, "WITHSCORES", "LIMIT", 0, size))
            pairs = [(float(found[i + 1]), found[i]) for i in range(0, len(found), 2)]
            fresh = [p for p in pairs if behind is None or (p < behind if is_newest_first else p > behind)]
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

    def _read_matching(self, refs: Sequence[JobRef], at_once: int) -> Iterator[tuple[JobRef, JobDetails | None]]:
        """read() of those that may match, lazily, `at_once` in one round trip; None for the others."""
        candidates = [ref for ref in refs if ref.may_fit(self._filter)]
        if candidates and self._state != "finished":  # finished jobs have no record
            by_ready = self._state in ("queued", "running")
            redis_filter = RedisJobFilter(self._redis, self._keys, self._filter)
            fitting = redis_filter.matching([ref.job_id for ref in candidates], by_ready=by_ready)
            candidates = [ref for ref in candidates if ref.job_id in fitting]
        places = {ref.job_id: place for place, ref in enumerate(candidates)}
        jobs: dict[bytes, JobDetails | None] = {}
        for ref in refs:
            if ref.job_id in places and ref.job_id not in jobs:
                place = places[ref.job_id]
                part = self.read(candidates[place : place + at_once])
                jobs.update((found.job_id, job) for found, job in part)
            yield ref, jobs.get(ref.job_id)

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
        client = self._filter.client
        band, turn, whose, last = at if len(at) == 4 else ("", "0", client or "", "")
        is_one_lane = "0" if client is None else "1"
        arguments = (band, turn, whose, last, min(size, LONGEST_PAGE), is_one_lane)
        status, *lanes = self._execute_one(SCRIPTS["list_queued"].call(self._keys, arguments))
        places = [tuple(part.decode() for part in lane[:3]) for lane in lanes]
        refs = [
            JobRef(job_id, (*place, job_id.decode()))
            for place, (_, _, _, *ids) in zip(places, lanes, strict=True)
            for job_id in ids
        ]
        return refs, (*places[-1], ""), status.decode()

    def _read_finished(self, at: tuple[Any, ...], size: int) -> tuple[list[JobRef], tuple[Any, ...], str]:
        seen_ms, seen = at if len(at) == 2 else (0, "")
        arguments = (seen, int(seen_ms), min(size, MAINTAIN_AT_ONCE))
        status, *found = self._execute_one(SCRIPTS["list_finished"].call(self._keys, arguments))
        pairs = zip(found[::2], map(int, found[1::2]), strict=True)
        refs = [JobRef(job_id, (ms, job_id.decode()), at_ms=ms) for job_id, ms in pairs]
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


def _raw_job(queue: str, ref: JobRef, values: Sequence[bytes | None], now_ms: int) -> RawJob:
    record, failures, crashes, errors, outcome = (value or b"" for value in (*values, b"")[:5])
    return RawJob(
        id=ref.job_id.decode(errors="replace"),
        queue=queue,
        record=record,
        failures=failures,
        crashes=crashes,
        errors=errors,
        outcome=outcome,
        **{"now_ms": now_ms, **ref.known},
    )


def _scored_ref(state: str, score: float, job_id: bytes) -> JobRef:
    name = "died" if state == "dead" else "due"
    since = held_since(score) if state == "scheduled" else None
    return JobRef(job_id, (score, job_id.decode()), {name: b"%d" % score}, score if since is None else since)


def encode_cursor(cursor: tuple[Any, ...]) -> str:
    """A cursor as text that may be part of a URL."""
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[Any, ...]:
    """The opposite of encode_cursor(). Returns the beginning, (), for invalid text."""
    try:
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if not isinstance(found, list):
            return ()
        if len(found) == 2:
            score = float(found[0])
            return (score, str(found[1])) if math.isfinite(score) else ()
        band, turn, client, last = map(str, found)
    except (ValueError, TypeError, OverflowError):
        return ()
    return (band, turn, client, last) if _BAND.fullmatch(band) and _TURN.fullmatch(turn) else ()
