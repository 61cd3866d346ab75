"""The readers of all shards together: what they show is merged, what they do is done in each.

For pages, all shards are asked at once. One that does not answer is left out, and is named in `silent`.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, count, islice
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from django_rtq.console.merging import grouped, joined, merge, merge_by, united
from django_rtq.console.reading.clients import ClientInQueue, ClientReader, QueueState, most_queued
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadLetters
from django_rtq.console.reading.jobs.waiting_reason import QueuePosition
from django_rtq.console.reading.jobs.walk import (
    DEPTH,
    JobPage,
    JobWalk,
    List,
    WrongCursor,
    decode_list,
    encode_cursor,
)
from django_rtq.console.reading.memory import MemoryReader
from django_rtq.console.reading.overview import Overview, OverviewReader
from django_rtq.console.reading.queues import QueueReader
from django_rtq.console.reading.readers import Readers, SilentShard, readers_of
from django_rtq.console.reading.selection import ALL_JOBS, Selection
from django_rtq.console.reading.sweep import Result, Sweep, Sweeper
from django_rtq.console.reading.task_details import TaskReader
from django_rtq.core.broker.brokers import get_broker, on_brokers_forgotten
from django_rtq.core.broker.task_backends import (
    place_of_job,
    shard_numbers,
    shard_of,
    shard_place,
    shard_places,
)
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import BrokerError, BrokerUnavailable, RTQError
from django_rtq.limits.limit_kinds import LIMIT_KINDS, Limit, Limits, encode_rate

T = TypeVar("T")
ANSWER_SECONDS = 1.0  # for so long a page waits for a shard


class _Shards:
    """Asks shards, each in a thread. One that does not answer is asked again when its thread has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """The settings were changed, or this is a new process."""
        self._oldest: dict[int, tuple[Future[Any], float]] = {}  # its oldest question, and until when that may take
        self._silent: dict[int, SilentShard] = {}

    def ask(
        self, read: Callable[[Readers], T], wanted: Sequence[int], *, in_turn: bool
    ) -> tuple[Mapping[int, T], list[SilentShard], list[RTQError]]:
        """What these shards answer, those that do not, and what others raise. Each is asked in a thread.

        `in_turn`: in this thread, one after the other, each for as long as connections wait.
        """
        until = time.monotonic() + ANSWER_SECONDS
        with self._lock:
            free = [] if in_turn else [number for number in wanted if not self._hangs(number)]
            asked = {number: self._asked(number, read, until) for number in free}
        answers, silent, refused = dict[int, T](), list[SilentShard](), list[RTQError]()
        for number in wanted:
            try:
                if in_turn:
                    answers[number] = read(readers_of(shard_place(number)))
                elif number in asked:
                    answers[number] = asked[number].result(max(0.0, until - time.monotonic()))
                else:
                    raise FutureTimeout
                self._silent.pop(number, None)
            except FutureTimeout:
                silent.append(self._note(number, ""))
            except BrokerError as error:
                silent.append(self._note(number, str(error)))
            except RTQError as error:
                refused.append(error)
        return answers, silent, refused

    def _hangs(self, number: int) -> bool:
        """Whether a question is under way that others were answered in the time of."""
        oldest, end = self._oldest.get(number, (None, 0.0))
        return oldest is not None and not oldest.done() and end < time.monotonic()

    def _asked(self, number: int, read: Callable[[Readers], T], until: float) -> Future[T]:
        future: Future[T] = Future()
        readers = readers_of(shard_place(number))

        def ask() -> None:
            try:
                future.set_result(read(readers))
            except BaseException as error:  # noqa: BLE001 - who waits for it gets it
                future.set_exception(error)

        threading.Thread(target=ask, name=f"rtq-shard-{number}", daemon=True).start()
        oldest, _ = self._oldest.get(number, (None, 0.0))
        if oldest is None or oldest.done():
            self._oldest[number] = future, until
        return future

    def _note(self, number: int, error: str) -> SilentShard:
        before = self._silent.get(number)
        since = before.since if before else utc_now()
        self._silent[number] = SilentShard(number, since, error or (before.error if before else ""))
        return self._silent[number]


_shards = _Shards()
on_brokers_forgotten.append(_shards.forget)


def _each(path: str, merge: Callable[[list[Any]], Any]) -> Any:
    """A method that asks the same of all shards, by a method of their readers, and merges what they answer."""
    method_of = attrgetter(path)

    def ask(self: Any, *args: Any, **options: Any) -> Any:
        return merge(self._shards.every(lambda readers: method_of(readers)(*args, **options)))

    return ask


class AllShards(Readers):
    """The readers of all shards, for one request. It has what pages and commands use; the rest is that of shard 0.

    `is_patient`: no page waits, so shards are asked one after the other, each for as long as connections wait.
    `is_strict`: besides, one that does not answer is an error.
    """

    is_of_all_shards = True

    def __init__(self, *, is_strict: bool = False, is_patient: bool = False) -> None:
        super().__init__(get_broker(""))
        self._shards = self
        self.silent: dict[int, SilentShard] = {}
        self.is_strict, self._is_patient = is_strict, is_patient or is_strict
        self._is_known_who_answers = False
        self.queues = _Queues(self)
        self.overview = _Overview(self)
        self.dead_letters = _DeadLetters(self)
        self.clients = _Clients(self)
        self.sweeps = _Sweeper(self)
        self.tasks = _Tasks(self)
        self.memory = _Memory(self)

    # -- the mechanism

    def ask(
        self, read: Callable[[Readers], T], numbers: Iterable[int] | None = None, *, in_turn: bool = False
    ) -> Mapping[int, T]:
        """What these shards answer, or all. Raises RTQError if none does; if it is strict, if one does not.

        A shard that did not answer in this request is not asked again.
        """
        self._is_known_who_answers = self._is_known_who_answers or numbers is None
        answers, silent, refused = _shards.ask(read, self.answering(numbers), in_turn=in_turn or self._is_patient)
        self.silent |= {shard.number: shard for shard in silent}
        if answers and not (self.is_strict and self.silent):
            return answers
        if refused:
            raise refused[0]  # they do not have what they were asked for
        numbers, errors = list(self.silent), [shard.error for shard in self.silent.values() if shard.error]
        who = f"Shard {numbers[0]} does not answer." if len(numbers) == 1 else "No shard answers."
        raise BrokerUnavailable(" ".join([who, *errors[:1]]))

    def every(self, read: Callable[[Readers], T]) -> list[T]:
        """The answers of all shards."""
        return list(self.ask(read).values())

    def of_job(self, job_id: str, read: Callable[[Readers], T]) -> T:
        """The answer of the shard to which the id of a job leads."""
        number = shard_of(place_of_job("", job_id)) or 0
        return self.ask(read, [number])[number]

    def in_each_shard(self, do: Callable[[Readers], T]) -> list[T]:
        """Do it in one shard after the other: signals are sent in this thread. Raises RTQError."""
        if not self._is_known_who_answers:
            self.every(lambda readers: readers.queues.names())
        return list(self.ask(do, in_turn=True).values())

    @property
    def places(self) -> list[str]:
        return shard_places()

    def in_places(self, places: Iterable[str], read: Callable[[str], T]) -> dict[str, T]:
        shards = {number: place for place in places if (number := shard_of(place)) is not None}
        found = self.ask(lambda readers: read(readers.place), shards) if shards else {}
        others = {place: read(place) for place in places if shard_of(place) is None}
        return {**{shards[number]: answer for number, answer in found.items()}, **others}

    def answering(self, numbers: Iterable[int] | None = None) -> list[int]:
        """Those of these shards, or of all, that are not known to be silent."""
        return [number for number in (shard_numbers() if numbers is None else numbers) if number not in self.silent]

    # -- look

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        return self.of_job(job_id, lambda readers: readers.find(job_id, queue))

    def find_with_position(self, job_id: str, queue: str | None = None) -> tuple[JobDetails, QueuePosition]:
        return self.of_job(job_id, lambda readers: readers.find_with_position(job_id, queue))

    workers = _each("workers", joined)
    queue = _each("queue", merge)

    def search(self, lists: Sequence[List], filter: Selection = ALL_JOBS, **options: Any) -> JobWalk:
        return _Search(self, lists, filter, **options)


# -- what several shards say of the same thing, as one value, where that depends on the shards


def _merged_clients(lists: Iterable[Sequence[ClientInQueue]], name: str) -> list[ClientInQueue]:
    """Those with the same attribute as one. Its limits are those of the shard that knows it."""
    return merge_by(name, sorted(chain(*lists), key=lambda client: not client.is_known))


def _merged_limits(queue: str, every: Sequence[Limits]) -> Limits:
    """The limits of a queue, of which each shard has a part, unless the queue as a whole is in one shard."""
    first = united(every)
    if get_config().queue(queue).shards:
        return first
    return {name: _whole(first[name], [limits[name].value for limits in every if name in limits]) for name in first}


def _whole(first: Limit, values: Sequence[Any]) -> Limit:
    parts = [value for value in values if value is not None]
    if len(parts) < 2 or parts[0] in ("jobs", "seconds"):
        return replace(first, value=next(iter(parts), None))
    if isinstance(parts[0], int):
        return replace(first, value=sum(parts))
    rates = [tuple(map(int, encode_rate(value).split("/"))) for value in parts]
    starts, per_ms = rates[0][0], sum(number / period_ms for number, period_ms in rates)
    return replace(first, value=LIMIT_KINDS["rate"].decode(f"{starts}/{round(starts / per_ms)}"))


# -- readers


class _Merged:
    """A reader of all shards."""

    def __init__(self, shards: AllShards) -> None:
        super().__init__(shards.broker)  # type: ignore[call-arg]
        self._shards = shards


class _Queues(_Merged, QueueReader):
    names = _each("queues.names", lambda names: sorted({*chain(*names)}))
    details = _each("queues.details", lambda lists: merge_by("name", chain(*lists)))


class _Overview(_Merged, OverviewReader):
    shared = _each("overview.shared", merge)
    history = _each("overview.history", joined)

    def glance(self) -> Overview | None:
        glances = [readers_of(shard_place(number)).overview.glance() for number in shard_numbers()]
        found = [overview for overview in glances if overview is not None]
        return merge(found) if found else None


class _Search(JobWalk):
    """The same lists of all shards."""

    def __init__(self, shards: AllShards, lists: Sequence[List], filter: Selection, **options: Any) -> None:
        super().__init__(shards.broker, lists, filter, **options)
        self._shards, self._options = shards, options
        self._rank = {list_: number for number, list_ in enumerate(lists)}

    def _of(self, readers: Readers) -> JobWalk:
        return readers.search(self._lists, self.filter, **self._options)

    def page(self, cursor: str = "", limit: int = 50, depth: int = DEPTH) -> JobPage:
        begun = read_places(cursor)
        unfinished = [number for number in shard_numbers() if begun.get(number, "") is not None]

        def read(readers: Readers) -> JobPage:
            return self._of(readers).page(begun.get(shard_of(readers.place) or 0) or "", limit, depth)

        pages = self._shards.ask(read, unfinished)
        return merged_page(pages, begun, limit, lambda place: self._rank[place[0], place[1]])

    def each(self, cursor: str = "") -> Iterator[tuple[JobDetails, Callable[[], str]]]:
        """In the order of page(), which would read a page of each shard for each page of all."""
        places, ranks = dict(read_places(cursor)), dict(self._rank)
        if cursor and not places:
            raise WrongCursor(f"{cursor!r} is not a cursor of this list.")
        dead = [list_ for list_ in self._lists if list_[1] == "dead"]
        ranks.update((list_, ranks[dead[0]]) for list_ in dead)

        def of_shard(number: int) -> Iterator[_Placed]:
            if (begun := places.get(number, "")) is None:
                return
            jobs = self._of(readers_of(shard_place(number))).each_placed(begun)
            try:
                yield from _ranked(number, jobs, lambda place: ranks[place[0], place[1]])
            except BrokerError as error:
                if self._shards.is_strict:
                    raise
                self._shards.silent[number] = SilentShard(number, utc_now(), str(error))

        for _, job, number, place in heapq.merge(*map(of_shard, self._shards.answering()), key=itemgetter(0)):
            places[number] = encode_cursor(place)
            yield job, partial(write_places, places)


class _DeadLetters(_Merged, DeadLetters):
    all_groups = _each("dead_letters.all_groups", merge)

    def with_messages(self, groups: Sequence[DeadGroup]) -> list[DeadGroup]:
        """Each group is read where its newest dead letter is."""
        at = grouped((place_of_job("", group.newest_id), group) for group in groups)
        by_place = self._shards.in_places(at, lambda place: readers_of(place).dead_letters.with_messages(at[place]))
        read = {group.newest_id: group for group in joined(by_place.values())}
        return [read.get(group.newest_id, group) for group in groups]


class _Clients(_Merged, ClientReader):
    get = _each("clients.get", partial(_merged_clients, name="queue"))
    all = _each("clients.all", merge)
    count = _each("clients.count", merge)
    limited = _each("clients.limited", lambda names: {*chain(*names)})

    def in_queue(self, queue: str, clients: Collection[str]) -> tuple[QueueState, list[ClientInQueue]]:
        states, found = zip(*self._shards.every(lambda readers: readers.clients.in_queue(queue, clients)), strict=True)
        whole = replace(merge(states), limits=_merged_limits(queue, [state.limits for state in states]))
        return whole, _merged_clients(found, "client")

    def busiest(self, queue: str) -> list[ClientInQueue]:
        lists = self._shards.every(lambda readers: readers.clients.busiest(queue))
        states = [clients[0].queue_state for clients in lists if clients]  # others have run no jobs
        return most_queued(replace(each, queue_state=merge(states)) for each in _merged_clients(lists, "client"))


class _Sweeper(_Merged, Sweeper):
    count = _each("sweeps.count", merge)  # the moment of the snapshot is the latest of all shards

    def steps(self, sweep: Sweep, **options: Any) -> Iterator[Result]:
        """Those of one shard after the other. Jobs that are named by their ids are in some only."""
        if not sweep.selection.ids:
            yield from chain(*self._shards.in_each_shard(lambda readers: readers.sweeps.steps(sweep, **options)))
        for place in dict.fromkeys(place_of_job("", job_id) for job_id in sweep.selection.ids):
            self._shards.ask(lambda readers: readers.queues.names(), [shard_of(place) or 0])  # or the error names it
            yield from readers_of(place).sweeps.steps(sweep.part_in(place), **options)


class _Tasks(_Merged, TaskReader):
    get = _each("tasks.get", merge)

    all = _each(
        "tasks.all",
        lambda every: {task: merge(of) for task, of in grouped(chain(*(one.items() for one in every))).items()},
    )


class _Memory(_Merged, MemoryReader):
    read = _each("memory.read", lambda lists: sorted(merge_by("name", chain(*lists)), key=lambda row: -row.total))


# -- pages of jobs, in the order of their lists; the cursor has a place in each shard

#: The place in each shard: a cursor, "" for the beginning, None for the end. If it is not named: the beginning.
Places = Mapping[int, str | None]


def read_places(cursor: str) -> Places:
    """The places in a cursor of merged_page(). The beginning for a text that is none."""
    try:
        return {int(number): None if place is None else encode_cursor(place) for number, place in decode_list(cursor)}
    except ValueError:  # it is that of one shard
        return {}


def write_places(places: Places) -> str:
    """The opposite of read_places(). Short: the cursors of 64 shards have to fit into a URL."""
    return encode_cursor([(number, place if place is None else decode_list(place)) for number, place in places.items()])


def merged_page(
    pages: Mapping[int, JobPage], begun: Places, limit: int, list_of: Callable[[Sequence[Any]], int]
) -> JobPage:
    """The first `limit` of the jobs on these pages of shards, which began at these places.

    `list_of` is the number of the list in which a job is, of its place. Within a list, jobs are in the order that it
    has in each shard: see LISTS. Of queued jobs, one of each shard after the other comes, as each has turns of its own.
    A shard without a page stays where it is.
    """
    jobs: list[JobDetails] = []
    taken = dict.fromkeys(pages, 0)
    rows = (
        _ranked(number, zip(page.jobs, (place for place, _ in page.places), strict=True), list_of)
        for number, page in pages.items()
    )
    for _, job, number, _place in islice(heapq.merge(*rows, key=itemgetter(0)), limit):
        jobs.append(job)
        taken[number] += 1
    places, searched, has_more, is_complete = dict(begun), 0, False, True
    for number, page in pages.items():
        if taken[number] == len(page.jobs):
            places[number], looked_at = page.next_cursor or None, page.searched
            is_complete = is_complete and page.is_complete
        elif taken[number]:
            place, looked_at = page.places[taken[number] - 1]
            places[number] = encode_cursor(place)
        else:
            looked_at = 0
        searched += looked_at
        has_more = has_more or taken[number] < len(page.jobs) or bool(page.next_cursor)
    cursor = write_places(places) if has_more else ""
    return JobPage(jobs=jobs, next_cursor=cursor, searched=searched, is_complete=is_complete)


#: The order, a job, its shard and its place.
_Placed = tuple[tuple[int, tuple[float, float]], JobDetails, int, Sequence[Any]]


def _ranked(
    number: int, jobs: Iterable[tuple[JobDetails, Sequence[Any]]], list_of: Callable[[Sequence[Any]], int]
) -> Iterator[_Placed]:
    positions = defaultdict[int, Iterator[int]](count)
    for job, place in jobs:
        rank = list_of(place)
        yield (rank, _order(job, next(positions[rank]))), job, number, place


def _order(job: JobDetails, position: int) -> tuple[float, float]:
    """What comes first of the next jobs of several shards. `position`: that in the list of its shard."""
    match job.state:
        case JobState.QUEUED:
            return -job.priority, position
        case JobState.SCHEDULED | JobState.RETRYING:
            return _seconds(job.due_at), 0
        case JobState.RUNNING:
            return _seconds(job.claimed_at), 0
    return -_seconds(job.died_at or job.finished_at), 0


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else math.inf  # jobs that are held are the last that are due
