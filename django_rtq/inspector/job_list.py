"""Pages of jobs: some of a queue in one state, and where to go on.

A page goes on behind the last job that was seen, not at a number: jobs that come and go meanwhile shift nothing.
Without a filter it takes two round trips; with one as many as there are batches to look through, up to a depth.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import clock_ms
from django_rtq.broker.scripts import SCRIPTS, Argument, Command
from django_rtq.inspector.details import JobDetails, RawJob
from django_rtq.inspector.job_filter import RedisJobFilter
from django_rtq.jobs.job import clock_moment

if TYPE_CHECKING:
    from django_rtq.broker.redis.client import RedisClient
    from django_rtq.inspector.ride import Ride

LONGEST_PAGE = 500
DEPTH = 10_000  # jobs that are looked through for those that fit
_BAND, _TURN = re.compile(r"-?[0-9]{1,12}\+?"), re.compile(r"-?[0-9]{1,16}")  # in cursors
_BATCH = 500  # jobs looked through in two round trips, when there is a filter

#: What may be listed, and in which order. Queued: as the clients come to turn at this moment, all of one client's
#: jobs together, though they will be claimed in turn with those of others; of a lane the first 10,000. Scheduled and
#: retrying: what is due first comes first. Running: the oldest first. Dead: the newest first. Finished: those of
#: which an outcome is kept, what finished last comes first.
LISTS = ("queued", "scheduled", "running", "retrying", "dead", "finished")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs are meant: those for which all of this is true. Empty: all."""

    task: str = ""  # its full name, or the end of it after a dot
    client: str | None = None  # "" are the jobs of nobody
    error_class: str = ""  # of the newest failure: in full, or the end of it after a dot
    error: str = ""  # a part of the newest failure's message, or its class as above
    id: str = ""  # or how it begins
    since: datetime | None = None  # dead: died; scheduled, retrying: due; else: could have started first
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self != EVERY

    def fits(self, job: JobDetails) -> bool:
        """Whether this job is meant."""
        at = job.died_at or job.due_at or job.finished_at or job.ready_at
        return self.fits_place(job.id, at) and self.fits_text(job)

    def fits_place(self, job_id: str, at: datetime | None) -> bool:
        """Whether it may be meant by its id, and by the moment that its list knows of it."""
        if not job_id.startswith(self.id):
            return False
        if self.since is None and self.until is None:
            return True
        if at is None:
            return False
        return (self.since is None or self.since <= at) and (self.until is None or at <= self.until)

    def fits_text(self, job: JobDetails) -> bool:
        """Whether it may be meant by its task, its client and its newest failure."""
        if self.task and not is_or_ends(job.task, self.task):
            return False
        if self.client is not None and job.client != self.client:
            return False
        kind, message = job.newest_error
        if self.error_class and not is_or_ends(kind, self.error_class):
            return False
        return not self.error or is_or_ends(kind, self.error) or self.error in message


EVERY = JobFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, and where to go on."""

    jobs: list[JobDetails] = field(default_factory=list)
    next_cursor: str = ""  # "": these were the last
    searched: int = 0  # jobs that were looked at for this page
    is_complete: bool = True  # False: it stopped before the page was full, because it had looked at so many, or so deep


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a job from the list in which it was found."""

    job_id: bytes
    cursor: tuple[Any, ...]  # behind this one
    known: Mapping[str, Any] = field(default_factory=dict)  # fields of RawJob

    def may_fit(self, wanted: JobFilter) -> bool:
        """Whether its id, and the moment that its list knows, are no reason against it."""
        at_ms = self.known.get("died") or self.known.get("due") or self.known.get("kept")
        if at_ms is None:
            return self.job_id.decode(errors="replace").startswith(wanted.id)
        return wanted.fits_place(self.job_id.decode(errors="replace"), clock_moment(float(at_ms)))


class JobListReader:
    """Reads pages. Any thread may use it."""

    def __init__(self, broker: Broker, redis: RedisClient | Ride | None = None) -> None:
        self._redis, self._keys = redis or broker.redis, broker.keys

    def page(self, queue: str, state: str, cursor: str, limit: int, wanted: JobFilter, depth: int) -> JobPage:
        """Up to `limit` jobs that fit. Raises ValueError for a state that is not among LISTS."""
        if state not in LISTS:
            raise ValueError(f"{state!r} is not one of {', '.join(LISTS)}.")
        limit, at = max(1, min(limit, LONGEST_PAGE)), unpacked(cursor)
        size = _BATCH if wanted or state == "scheduled" else limit
        jobs: list[JobDetails] = []
        searched = 0
        while searched < depth:
            rows, behind, rest = self._rows(queue, state, at, min(size, depth - searched), wanted)
            looked_at = self._sifted(queue, rows, state, wanted, limit) if wanted else self.opened(queue, rows, state)
            for row, job in looked_at:
                searched, at = searched + 1, row.cursor
                if job is not None and wanted.fits(job):
                    jobs.append(job)
                if len(jobs) == limit:
                    is_end = rest != "more" and row is rows[-1]
                    return JobPage(jobs=jobs, next_cursor="" if is_end else packed(at), searched=searched)
            if rest != "more":
                return JobPage(jobs=jobs, searched=searched, is_complete=rest == "all")
            if not rows:  # there may be more behind what was looked at, and nothing else is told of it
                at = behind
        return JobPage(jobs=jobs, next_cursor=packed(at), searched=searched, is_complete=False)

    def opened(self, queue: str, rows: Sequence[Row], state: str = "") -> Iterator[tuple[Row, JobDetails | None]]:
        """The jobs of these rows, in one round trip; None for one that is somewhere else by now."""
        if not rows:
            return
        keys, ids = self._keys.of(queue), [row.job_id for row in rows]
        hashes = [keys.jobs, keys.failures, keys.crashes, keys.errors]
        if state == "finished":
            hashes.append(keys.results)  # else what is left of a cancelled job in its lane would be told as finished
        commands: list[Command] = [("HMGET", key, *ids) for key in hashes]
        if state == "finished":  # what is over its time is not shown, though Redis may keep it a little longer
            commands.append(("TIME",))
        if state == "scheduled":
            commands.append(("ZMSCORE", keys.retrying, *ids))  # they have a list of their own
        found = self._redis.execute(commands, resend=True)
        now_ms = clock_ms(found.pop()) if state == "finished" else 0
        is_else = found.pop() if state == "scheduled" else [None] * len(rows)
        for row, is_retrying, *values in zip(rows, is_else, *found, strict=True):
            yield row, _raw(queue, row, values, now_ms).details() if is_retrying is None else None

    def _sifted(
        self, queue: str, rows: Sequence[Row], state: str, wanted: JobFilter, most: int
    ) -> Iterator[tuple[Row, JobDetails | None]]:
        """opened() of those rows that may fit, so many at a time as somebody goes on; None for the others."""
        candidates = [row for row in rows if row.may_fit(wanted)]
        if candidates and state != "finished":  # of those there is no record any more
            by_ready = state in ("queued", "running")
            sieve = RedisJobFilter(self._redis, self._keys.of(queue), wanted)
            fitting = sieve.sift([row.job_id for row in candidates], by_ready=by_ready)
            candidates = [row for row in candidates if row.job_id in fitting]
        places = {row.job_id: place for place, row in enumerate(candidates)}
        opened: dict[bytes, JobDetails | None] = {}
        for row in rows:
            if row.job_id in places and row.job_id not in opened:
                place = places[row.job_id]
                part = self.opened(queue, candidates[place : place + most], state)
                opened.update((found.job_id, job) for found, job in part)
            yield row, opened.get(row.job_id)

    def _rows(
        self, queue: str, state: str, at: tuple[Any, ...], size: int, wanted: JobFilter
    ) -> tuple[list[Row], tuple[Any, ...], str]:
        """Some rows behind a cursor, where to go on if there are none, and how it ends: more, all or cut."""
        if state == "queued":
            return self._queued(queue, at, size, wanted.client)
        if state == "running":
            return self._running(queue, at, size)
        is_newest_first = state in ("dead", "finished")
        key = getattr(self._keys.of(queue), "result_times" if state == "finished" else state)
        pairs, is_last = self.scored(key, at, size, is_newest_first=is_newest_first)
        return [_row(state, score, job_id) for score, job_id in pairs], at, "all" if is_last else "more"

    def scored(
        self, key: bytes, at: tuple[Any, ...], size: int, *, is_newest_first: bool, most: Argument = "+inf"
    ) -> tuple[list[tuple[float, bytes]], bool]:
        """Members of a sorted set behind a cursor (score, id), with their scores, and whether they are the last."""
        behind = (float(at[0]), str(at[1]).encode()) if len(at) == 2 else None
        wanted = size
        size += 1 if behind else 0  # it may still be there itself
        while True:
            if is_newest_first:
                edges: tuple[Argument, ...] = (most if behind is None else repr(behind[0]), "-inf")
                verb = "ZREVRANGEBYSCORE"
            else:
                edges = ("-inf" if behind is None else repr(behind[0]), most)
                verb = "ZRANGEBYSCORE"
            found = self._redis.execute_one((verb, key, *edges, "WITHSCORES", "LIMIT", 0, size), resend=True)
            pairs = [(float(found[i + 1]), found[i]) for i in range(0, len(found), 2)]
            fresh = [p for p in pairs if behind is None or (p < behind if is_newest_first else p > behind)]
            if fresh or len(pairs) < size:
                return fresh[:wanted], len(pairs) < size and len(fresh) <= wanted
            size *= 2  # more have one and the same score than fit

    def _queued(
        self, queue: str, at: tuple[Any, ...], size: int, client: str | None
    ) -> tuple[list[Row], tuple[Any, ...], str]:
        alone = client is not None
        band, turn, whose, last = at if len(at) == 4 else ("", "0", client or "", "")
        call = SCRIPTS["list_queued"].call(
            self._keys.of(queue), (band, turn, whose, last, min(size, LONGEST_PAGE), "1" if alone else "0")
        )
        status, *lanes = self._redis.execute_one(call, resend=True)
        places = [tuple(part.decode() for part in lane[:3]) for lane in lanes]
        rows = [
            Row(job_id, (*place, job_id.decode()))
            for place, (_, _, _, *ids) in zip(places, lanes, strict=True)
            for job_id in ids
        ]
        return rows, (*places[-1], ""), status.decode()

    def _running(self, queue: str, at: tuple[Any, ...], size: int) -> tuple[list[Row], tuple[Any, ...], str]:
        now_ms, *entries = self._redis.execute_one(
            SCRIPTS["list_running"].call(self._keys.of(queue), (2000, 0)), resend=True
        )
        rows = []
        for worker, lease_ms, _, *held in entries:
            by = {"worker": worker, "lease": b"%d" % (now_ms + lease_ms), "now_ms": now_ms}
            for job_id, claim, _, wish, progress in held:
                cursor = (int(claim.split(b" ")[1]), job_id.decode())
                run = {"held": claim, "wish": wish, "progress": progress}
                rows.append(Row(job_id, cursor, {**by, **run}))
        rows.sort(key=lambda row: row.cursor)
        behind = [row for row in rows if len(at) != 2 or row.cursor > (float(at[0]), str(at[1]))]
        return behind[:size], at, "all" if len(behind) <= size else "more"


def _raw(queue: str, row: Row, values: Sequence[bytes | None], now_ms: int) -> RawJob:
    record, failures, crashes, errors, outcome = (value or b"" for value in (*values, b"")[:5])
    return RawJob(
        id=row.job_id.decode(errors="replace"),
        queue=queue,
        record=record,
        failures=failures,
        crashes=crashes,
        errors=errors,
        outcome=outcome,
        **{"now_ms": now_ms, **row.known},
    )


def _row(state: str, score: float, job_id: bytes) -> Row:
    name = {"dead": "died", "finished": "kept"}.get(state, "due")
    return Row(job_id, (score, job_id.decode()), {name: b"%d" % score})


def is_or_ends(full: str, name: str) -> bool:
    """Whether this is the name of it, or its end after a dot."""
    return full == name or full.endswith(f".{name}")


def packed(cursor: tuple[Any, ...]) -> str:
    """A cursor as a word that may stand in a URL."""
    return base64.urlsafe_b64encode(json.dumps(cursor).encode()).decode().rstrip("=")


def unpacked(text: str) -> tuple[Any, ...]:
    """The cursor that a word stands for; the beginning for what is none."""
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
