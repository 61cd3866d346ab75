"""Searches lists of jobs with a filter, in bounded steps inside Redis, so that jobs that do not match are never sent.

Each step looks at some hundred jobs of a list. The steps of short lists are sent together; those of a long list one
after the other, so that Redis serves others in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.jobs.job_refs import (
    DEPTH,
    LONGEST_PAGE,
    JobPage,
    JobRef,
    check_list,
    checked_place,
    decode_list,
    encode_cursor,
    read_commands,
    read_jobs,
)
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.maintenance import MAINTAIN_AT_ONCE
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails

STEP = 250  # jobs that one script looks at: some milliseconds
_STEP_OF = {"finished": MAINTAIN_AT_ONCE}  # outcomes may be long
_KNOWN_OF_RUNNING = ("worker", "lease", "held", "wish", "progress", "now_ms")

List = tuple[str, str]  # queue, state


@dataclass(frozen=True, slots=True)
class _Match:
    """A job that may match."""

    list: List
    ref: JobRef
    searched: int  # jobs that were looked at up to this one


@dataclass(slots=True)
class _Position:
    """How far the search is."""

    left: list[List]  # lists that have not been searched to their end, in order
    at: tuple[Any, ...] = ()  # in the first of them
    looked: int = 0
    is_cut: bool = False  # some list could not be followed to its end

    @property
    def cursor(self) -> str:
        return encode_cursor([*self.left[0], *self.at]) if self.left else ""


class FilteredSearch:
    """Searches these lists, one after the other. For one thread.

    `sizes` tells how many jobs the lists hold, to send the steps of short ones together. `shown` is what the user may
    see of a job: the filter is applied to that. The commands in `also` are sent with the first round trip; their
    replies are in `replies` afterwards.
    """

    def __init__(
        self,
        broker: Broker,
        lists: Sequence[List],
        filter: JobFilter,
        *,
        sizes: Mapping[List, int] | None = None,
        shown: Callable[[JobDetails], JobDetails] = lambda job: job,
        also: Sequence[Command] = (),
    ) -> None:
        for _, state in lists:
            check_list(state)
        self._redis, self._keys = broker.redis, broker.keys
        self._lists, self._filter, self._shown = list(lists), filter, shown
        self._sizes = sizes or {}
        self._also = list(also)
        self.replies: list[Any] = []

    def page(self, cursor: str = "", limit: int = 50, depth: int = DEPTH) -> JobPage:
        """Up to `limit` jobs that match, after a look at up to `depth` jobs."""
        limit, position = max(1, min(limit, LONGEST_PAGE)), self._position(cursor)
        jobs: list[JobDetails] = []
        places: list[tuple[Sequence[Any], int]] = []
        while position.left and position.looked < depth:
            matches = self._step(position, depth - position.looked, limit - len(jobs))
            for match, job in self._read_some(matches, limit):
                if job is None or not self._filter.fits(self._shown(job)):
                    continue
                jobs.append(job)
                places.append(([*match.list, *match.ref.cursor], match.searched))
                if len(jobs) == limit:
                    if match is not matches[-1] or position.left:
                        position.left = self._lists[self._lists.index(match.list) :]
                        position.at = match.ref.cursor
                    cursor, searched = position.cursor, match.searched
                    return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, places=places)
        cursor, searched, is_complete = position.cursor, position.looked, not position.left and not position.is_cut
        return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, is_complete=is_complete, places=places)

    def next_refs(self, cursor: str, depth: int) -> tuple[list[tuple[List, JobRef]], str, int]:
        """Look at up to `depth` jobs. Returns those that match, the next cursor, and how many it looked at.

        It reads records only if the filter has a text.
        """
        position, refs = self._position(cursor), list[tuple[List, JobRef]]()
        while position.left and position.looked < depth:
            matches = [match for match in self._step(position, depth - position.looked, STEP) if match.ref.job_id]
            if self._filter.text:
                read = self._read_some(matches, STEP)
                matches = [match for match, job in read if job and self._filter.fits(self._shown(job))]
            refs += [(match.list, match.ref) for match in matches]
        return refs, position.cursor, position.looked

    def left(self, cursor: str) -> list[List]:
        """The lists that have not been searched to their ends, if the next part begins at this cursor."""
        return self._position(cursor).left if cursor else []

    # -- inside

    def _position(self, cursor: str) -> _Position:
        queue, state, *place = [*decode_list(cursor), "", ""]
        place = place[:-2]
        if (queue, state) not in self._lists:
            return _Position(list(self._lists))
        is_place = (len(place) == 5) == (state == "queued")
        left = self._lists[self._lists.index((queue, state)) :]
        return _Position(left, checked_place(place) if is_place else ())

    def _step(self, position: _Position, depth: int, enough: int) -> list[_Match]:
        """Look at the next jobs: of one long list, or of some short ones. Moves the position."""
        while not position.at and position.left[1:] and self._sizes.get(position.left[0]) == 0:
            position.left = position.left[1:]
        packet = self._packet(position.left, depth)
        places = [position.at, *[()] * (len(packet) - 1)]
        calls = [self._call(list_, at, most, enough) for (list_, most), at in zip(packet.items(), places, strict=True)]
        matches: list[_Match] = []
        for list_, (status, looked, at, *jobs) in zip(packet, self._execute(calls), strict=True):
            matches += self._matches(list_, jobs, position.looked)
            position.looked += looked
            if status == b"more":
                position.at = tuple(part.decode() for part in at)
                break  # what was found behind it is found again by the next step
            position.is_cut = position.is_cut or status == b"cut"
            position.left, position.at = position.left[1:], ()
        return matches

    def _packet(self, lists: Sequence[List], depth: int) -> dict[List, int]:
        """The lists that are searched together: at how many jobs of each to look."""
        packet: dict[List, int] = {}
        weight = 0
        for list_ in lists:
            most = min(_STEP_OF.get(list_[1], STEP), depth - weight)
            size = self._sizes.get(list_, STEP)
            if packet and weight + size > STEP:
                break
            packet[list_] = most
            weight += size
            if size >= most:
                break  # the next step goes on in this list
        return packet

    def _call(self, list_: List, at: tuple[Any, ...], most: int, enough: int) -> Command:
        (queue, state), filter = list_, self._filter
        if not at and state == "queued" and filter.client is not None:
            at = ("", "0", filter.client)  # only the lanes of this client
        elif len(at) == 5 and filter.client is not None:
            at = (*at, "alone")
        texts = filter.outcome_texts if state == "finished" else ""
        arguments = (*filter.script_arguments(times=True), state, filter.ids_argument, most, enough, texts, *at)
        return SCRIPTS["search_jobs"].call(self._keys.of(queue), arguments)

    def _execute(self, calls: Sequence[Command]) -> list[Any]:
        """Send commands; the first time together with those that were given as `also`."""
        replies = self._redis.execute([*self._also, *calls], resend=True)
        if self._also:
            self.replies, replies = replies[: len(self._also)], replies[len(self._also) :]
            self._also = []
        return replies

    def _matches(self, list_: List, jobs: Sequence[Any], before: int) -> Iterator[_Match]:
        for number, place, known, record, failure in jobs:
            if (record or failure) and not self._filter.fits_heads(record, failure):
                continue
            cursor = tuple(part.decode() for part in place)
            ref = JobRef(place[3 if len(place) > 2 else 1], cursor, _known_of(list_[1], known))
            yield _Match(list_, ref, before + number)

    def _read_some(self, matches: Sequence[_Match], at_once: int) -> Iterator[tuple[_Match, JobDetails | None]]:
        """The jobs, lazily, some in each round trip."""
        for start in range(0, len(matches), at_once):
            yield from self._read(matches[start : start + at_once])

    def _read(self, matches: Sequence[_Match]) -> list[tuple[_Match, JobDetails | None]]:
        """The jobs, in one round trip."""
        groups = [(list_, list(group)) for list_, group in groupby(matches, key=lambda match: match.list)]
        commands = [
            read_commands(self._keys.of(queue), state, [match.ref.job_id for match in group])
            for (queue, state), group in groups
        ]
        replies = self._redis.execute([c for of_list in commands for c in of_list], resend=True) if commands else []
        pairs: list[tuple[_Match, JobDetails | None]] = []
        for ((queue, state), group), of_list in zip(groups, commands, strict=True):
            part, replies = replies[: len(of_list)], replies[len(of_list) :]
            jobs = read_jobs(queue, state, [match.ref for match in group], part)
            pairs += zip(group, jobs, strict=True)
        return pairs


def list_sizes(details: Mapping[str, QueueDetails], lists: Iterable[List]) -> dict[List, int]:
    """How many entries these lists have: that of scheduled jobs has the retrying ones as well."""
    sizes = {(queue, state): getattr(details[queue], state) for queue, state in lists}
    return {key: size + details[key[0]].retrying if key[1] == "scheduled" else size for key, size in sizes.items()}


def _known_of(state: str, known: Sequence[bytes]) -> dict[str, Any]:
    if state == "running":
        fields: dict[str, Any] = dict(zip(_KNOWN_OF_RUNNING, known, strict=True))
        return {**fields, "now_ms": int(known[-1])}
    name = {"dead": "died", "scheduled": "due", "retrying": "due"}.get(state)
    return {name: b"%d" % float(known[0])} if name else {}
