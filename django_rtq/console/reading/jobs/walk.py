"""Walks lists of jobs in bounded steps. Filters are applied inside Redis, so jobs that do not match are never sent.

Each step looks at some hundred jobs of a list. The steps of short lists are sent together; those of a long list one
after the other, so that Redis serves others in between. Beside the lists that people see there are those of
lib/search_steps.lua.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

from django.core.signing import BadSignature, Signer

from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.selection import ALL_JOBS, LISTS, Selection
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import MAINTAIN_AT_ONCE, SCRIPTS
from django_rtq.core.jobs.details import JobDetails, read_found

_SALT = "django_rtq.cursor"

LONGEST_PAGE = 500
DEPTH = 5000  # jobs that a search with a filter looks at

STEP = 250  # jobs that one script looks at: some milliseconds
_STEP_OF = {"finished": MAINTAIN_AT_ONCE}  # outcomes may be long
_DEAD = ("dead", "oldest")

List = tuple[str, str]  # queue, name of a list
Shown = Callable[[JobDetails], JobDetails]  # what the user may see of a job: that is matched, and returned

_Placed: TypeAlias = tuple[JobDetails, Sequence[Any]]  # a job, its list and its place there


class WrongCursor(ValueError):
    """A cursor is not one of these lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, and where the next page begins."""

    jobs: list[JobDetails] = field(default_factory=list)
    next_cursor: str = ""  # "": this was the last page
    searched: int = 0  # how many jobs were looked at for this page
    is_complete: bool = True  # False: the search reached its limit before the page was full
    #: Where a page behind each job begins, and how many jobs were looked at up to it.
    places: list[tuple[Sequence[Any], int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Match:
    """A job that matches."""

    list: List
    place: tuple[str, ...]
    searched: int  # jobs that were looked at up to this one
    job_id: str
    job: JobDetails | None  # None: it was not read


@dataclass(slots=True)
class _Position:
    """How far the walk is."""

    left: list[List]  # lists that have not been walked to their end, in order
    at: tuple[Any, ...] = ()  # in the first of them
    looked: int = 0
    is_cut: bool = False  # some list could not be followed to its end

    @property
    def cursor(self) -> str:
        return encode_cursor([*self.left[0], *self.at]) if self.left else ""


class JobWalk:
    """Walks these lists, one after the other. For one thread.

    Cursors name the last job that was seen: jobs that come and go shift nothing. Without a filter a page takes one
    round trip; with one, as many as there are batches.

    `sizes` tells how many jobs the lists hold, to send the steps of short ones together. Queues and states of
    `filter` are not asked.
    """

    def __init__(
        self,
        broker: Broker,
        lists: Sequence[List],
        filter: Selection = ALL_JOBS,
        *,
        sizes: Mapping[List, int] | None = None,
        shown: Shown = lambda job: job,
    ) -> None:
        self._broker, self._redis, self._keys = broker, broker.redis, broker.keys
        self._lists, self.filter, self._shown, self._until_ms = list(lists), filter, shown, filter.until_ms
        self._sizes, self.is_filtered = sizes or {}, filter.is_filtered

    def page(self, cursor: str = "", limit: int = 50, depth: int = DEPTH) -> JobPage:
        """Up to `limit` jobs that match, after a look at up to `depth`. Raises ValueError for others than LISTS."""
        for _, state in self._lists:
            if state not in LISTS:
                raise ValueError(f"{state!r} is not one of {', '.join(LISTS)}.")
        limit, position, found = max(1, min(limit, LONGEST_PAGE)), self._position(cursor), list[_Match]()
        while position.left and position.looked < depth and len(found) < limit:
            found += self._matches(position, depth - position.looked, limit - len(found), "jobs")
        searched, is_complete = position.looked, not position.left and not position.is_cut
        if len(found) >= limit:
            last, searched, is_complete = found[limit - 1], found[limit - 1].searched, True
            if len(found) > limit or position.left:
                position.left, position.at = self._lists[self._lists.index(last.list) :], last.place
        return JobPage(
            jobs=[match.job for match in found[:limit] if match.job],
            next_cursor=position.cursor,
            searched=searched,
            is_complete=is_complete,
            places=[([*match.list, *match.place], match.searched) for match in found[:limit]],
        )

    def next_ids(self, cursor: str, depth: int) -> tuple[list[str], str]:
        """Look at up to `depth` jobs. Returns the ids of those that match, and the next cursor."""
        position, ids = self._position(cursor), list[str]()
        while position.left and position.looked < depth:
            ids += [match.job_id for match in self._matches(position, depth - position.looked, STEP, "ids")]
        return ids, position.cursor

    def count(self, cursor: str, depth: int) -> tuple[Counter[str], str, int]:
        """Look at up to `depth` jobs. Returns how many match by queue, the next cursor, and how many it looked at."""
        position, numbers = self._position(cursor), Counter[str]()
        while position.left and position.looked < depth:
            for list_, before, counted, rows in self._step(position, depth - position.looked, STEP, "count"):
                numbers[list_[0]] += counted + len(self._read(list_, before, rows))
        return numbers, position.cursor, position.looked

    def each(self, cursor: str = "") -> Iterator[tuple[JobDetails, Callable[[], str]]]:
        """All jobs that match, list by list, each with what says the cursor behind it, if asked before the next one is.

        Dead letters of all queues come together, the newest first. Jobs may change their state while this goes on, and
        those that come meanwhile may be left out. Raises ValueError for others than LISTS, and WrongCursor.
        """
        return ((job, partial(encode_cursor, place)) for job, place in self.each_placed(cursor))

    def each_placed(self, cursor: str) -> Iterator[_Placed]:
        """each() with the list and the place there: what a cursor has."""
        begun = decode_list(cursor)
        if cursor and tuple(begun[:2]) not in self._lists:
            raise WrongCursor(f"{cursor!r} is not a cursor of this list.")
        for is_dead, group in groupby(self._lists, key=lambda list_: list_[1] == "dead"):
            some = list(group)
            if begun and tuple(begun[:2]) not in some:
                continue
            if is_dead:  # a place in the list of one queue is one in all of them
                walks = (self._walk([of], encode_cursor([*of, *begun[2:]])) for of in some)
                yield from heapq.merge(*walks, key=lambda found: (float(found[1][2]), found[1][3]), reverse=True)
            else:
                yield from self._walk(some, cursor)
            cursor, begun = "", []

    def _walk(self, lists: Sequence[List], cursor: str) -> Iterator[_Placed]:
        walk, has_more = JobWalk(self._broker, lists, self.filter, shown=self._shown), True
        while has_more:
            page = walk.page(cursor, MAINTAIN_AT_ONCE)
            yield from ((job, place) for job, (place, _) in zip(page.jobs, page.places, strict=True))
            cursor, has_more = page.next_cursor, bool(page.next_cursor)

    def left(self, cursor: str) -> list[List]:
        """The lists that have not been walked to their ends, if the next part begins at this cursor."""
        return self._position(cursor).left if cursor else []

    # -- inside

    def _position(self, cursor: str) -> _Position:
        begun = decode_list(cursor)
        list_ = tuple(begun[:2])
        if list_ not in self._lists:
            return _Position(list(self._lists))
        return _Position(self._lists[self._lists.index(list_) :], tuple(begun[2:]))

    def _matches(self, position: _Position, depth: int, enough: int, reply: str) -> list[_Match]:
        steps = self._step(position, depth, enough, reply)
        return [match for list_, before, _, rows in steps for match in self._read(list_, before, rows)]

    def _step(self, position: _Position, depth: int, enough: int, reply: str) -> list[tuple[List, int, int, list[Any]]]:
        """Look at the next jobs: of one long list, or of some short ones. Moves the position.

        Returns of each list how many jobs were looked at before it, how many match, and the rows of others.
        """
        while not position.at and position.left[1:] and self._sizes.get(position.left[0]) == 0:
            position.left = position.left[1:]
        packet = self._packet(position.left, depth, enough)
        places = [position.at, *[()] * (len(packet) - 1)]
        calls = [
            self._call(list_, at, most, enough, reply) for (list_, most), at in zip(packet.items(), places, strict=True)
        ]
        replies, found = self._redis.execute(calls, resend=True), []
        for list_, (status, looked, at, counted, *rows) in zip(packet, replies, strict=True):
            found.append((list_, position.looked, counted, rows))
            position.looked += looked
            if status == b"more":
                position.at = tuple(part.decode(errors="replace") for part in at)
                break  # what was found behind it is found again by the next step
            position.is_cut = position.is_cut or status == b"cut"
            position.left, position.at = position.left[1:], ()
        return found

    def _packet(self, lists: Sequence[List], depth: int, enough: int) -> dict[List, int]:
        """The lists that are walked together: at how many jobs of each to look."""
        packet: dict[List, int] = {}
        weight = 0
        for list_ in lists:
            is_all = not self.is_filtered and list_[1] != "scheduled"  # all that are looked at are returned
            most = min(enough if is_all else STEP, _STEP_OF.get(list_[1], STEP), depth - weight)
            size = self._sizes.get(list_, STEP)
            if packet and weight + size > STEP:
                break
            packet[list_] = most
            weight += size
            if size >= most:
                break  # the next step goes on in this list
        return packet

    def _call(self, list_: List, at: tuple[Any, ...], most: int, enough: int, reply: str) -> Command:
        (queue, name), filter = list_, self.filter
        if name == "queued" and filter.client is not None:
            at = (*at, "alone") if at else ("", "0", filter.client)  # only the lanes of this client
        is_dead = name in _DEAD
        died, made = (self._until_ms, "") if is_dead else (None, "" if self._until_ms is None else self._until_ms)
        texts = filter.outcome_texts if name == "finished" else ""
        wanted = (*filter.script_arguments(died), name, filter.ids_argument, made, texts)
        return SCRIPTS["search_jobs"].call(self._keys.of(queue), (*wanted, most, enough, reply, *at))

    def _read(self, list_: List, before: int, rows: Sequence[Any]) -> list[_Match]:
        """Those that match: a job that was read may do so."""
        matches = []
        for number, at, *found in rows:
            place = tuple(part.decode(errors="replace") for part in at)
            job_id = place[3 if len(place) > 2 else 1]
            stored = read_found(job_id, list_[0], found[0]) if found else None
            job = self._shown(stored) if stored else None
            if not found or (job and (not self.is_filtered or self.filter.fits(job))):
                matches.append(_Match(list_, place, before + number, job_id, job))
        return matches


def list_sizes(details: Mapping[str, QueueDetails], lists: Iterable[List]) -> dict[List, int]:
    """How many entries these lists have: that of scheduled jobs has the retrying ones as well."""
    sizes = {(queue, state): getattr(details[queue], state) for queue, state in lists}
    return {key: size + details[key[0]].retrying if key[1] == "scheduled" else size for key, size in sizes.items()}


def encode_cursor(cursor: Any) -> str:
    """A cursor as text that may be part of a URL. It is signed: nobody else makes one. Without the time, so that pages
    stay as they are."""
    return Signer(salt=_SALT).sign_object(cursor, compress=True)


def decode_list(text: str) -> list[Any]:
    """The list in a cursor; [] for text that is none."""
    try:
        items = Signer(salt=_SALT).unsign_object(text) if text else []
    except (BadSignature, UnicodeError):  # which arguments of commands may raise
        return []
    return items if isinstance(items, list) else []
