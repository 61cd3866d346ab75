"""The readers of all shards together: what they show is merged, what they do is done in each.

For pages, all shards are asked at once. One that does not answer is left out, and is named in `silent`.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from django_rtq.console.merging import grouped, joined, merge, merge_by, united
from django_rtq.console.reading.clients import ClientInQueue, ClientReader, QueueState, most_queued
from django_rtq.console.reading.details import QueueDetails, WorkerDetails
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadLetters
from django_rtq.console.reading.jobs.waiting_reason import QueuePosition
from django_rtq.console.reading.jobs.walk import DEPTH, JobPage, JobWalk, List, WrongCursor, encode_cursor
from django_rtq.console.reading.memory import MemoryReader
from django_rtq.console.reading.metrics.reader import TaskMetrics, merged_versions
from django_rtq.console.reading.metrics.time_series import merge_series
from django_rtq.console.reading.overview import Overview, SharedOverview
from django_rtq.console.reading.queues import QueueReader
from django_rtq.console.reading.readers import MOST_CLIENTS, QueuePage, Readers, SilentShard, readers_of
from django_rtq.console.reading.selection import ALL_JOBS, Selection
from django_rtq.console.reading.sweep import Result, Sweep, Sweeper
from django_rtq.console.reading.task_details import TaskReader
from django_rtq.console.shards.all_shards import ShardAnswers, ask_shards
from django_rtq.console.shards.merged_page import merged_page, order, read_places, write_places
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import (
    place_of_job,
    shard_numbers,
    shard_of,
    shard_place,
    shard_places,
)
from django_rtq.core.conf.config import get_config
from django_rtq.core.jobs.details import JobDetails
from django_rtq.databases.clocks import utc_now
from django_rtq.exceptions import BrokerError
from django_rtq.limits.limit_kinds import LIMIT_KINDS, Limit, Limits, encode_rate

T = TypeVar("T")


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
        self.shared_overview = _SharedOverview(self)
        self.dead_letters = _DeadLetters(self)
        self.clients = _Clients(self)
        self.sweeps = _Sweeper(self)
        self.tasks = _Tasks(self)
        self.memory = _Memory(self)

    # -- the mechanism

    def ask(self, read: Callable[[Readers], T], numbers: Iterable[int] | None = None) -> Mapping[int, T]:
        """What these shards answer, or all. Raises RTQError if none has an answer.

        A shard that did not answer in this request is not asked again.
        """
        self._is_known_who_answers = self._is_known_who_answers or numbers is None
        return self._noted(ask_shards(read, self.answering(numbers), in_turn=self._is_patient))

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
        answers = ask_shards(do, self.answering(), in_turn=True)
        return list(self._noted(answers).values())

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

    def _noted(self, answers: ShardAnswers[T]) -> Mapping[int, T]:
        """The answers. Raises RTQError if there is none, or if it is strict and one is missing."""
        self.silent |= {shard.number: shard for shard in answers.silent}
        known = {} if self.is_strict and self.silent else answers.by_shard
        return replace(answers, by_shard=known, silent=list(self.silent.values())).checked()

    # -- look

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        return self.of_job(job_id, lambda readers: readers.find(job_id, queue))

    def find_with_position(self, job_id: str, queue: str | None = None) -> tuple[JobDetails, QueuePosition]:
        return self.of_job(job_id, lambda readers: readers.find_with_position(job_id, queue))

    def workers(self, queues: Iterable[str] | None = None, *, with_usual: bool = False) -> list[WorkerDetails]:
        names = None if queues is None else list(queues)
        return joined(self.every(lambda readers: readers.workers(names, with_usual=with_usual)))

    def search(self, lists: Sequence[List], filter: Selection = ALL_JOBS, **options: Any) -> JobWalk:
        return _Search(self, lists, filter, **options)

    def queue_page(self, queue: str, state: str, *, cursor: str = "", limit: int = 50, **options: Any) -> QueuePage:
        begun = read_places(cursor)

        def read(readers: Readers) -> QueuePage:
            begin = begun.get(shard_of(readers.place) or 0) or ""
            return readers.queue_page(queue, state, cursor=begin, limit=limit, **options)

        pages = self.ask(read)
        unfinished = {number: page.page for number, page in pages.items() if begun.get(number, "") is not None}
        states = [page.clients[0].queue_state for page in pages.values() if page.clients]  # others have run no jobs
        clients = _merged_clients([page.clients for page in pages.values()], "client")
        return QueuePage(
            details=merge(page.details for page in pages.values()),
            page=merged_page(unfinished, begun, limit, lambda place: 0),
            clients=most_queued([replace(each, queue_state=merge(states)) for each in clients], MOST_CLIENTS),
            versions=merged_versions(page.versions for page in pages.values()),
            series=merge_series([page.series for page in pages.values()]),
            deploys=next(iter(pages.values())).deploys,
        )


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


class _SharedOverview(SharedOverview):
    def __init__(self, shards: AllShards) -> None:
        super().__init__(shards.overview)
        self._shards = shards

    read = _each("shared_overview.read", merge)
    history = _each("shared_overview.history", joined)

    def glance(self) -> Overview | None:
        glances = [readers_of(shard_place(number)).shared_overview.glance() for number in shard_numbers()]
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

        def ordered(number: int) -> Iterator[tuple[tuple[int, tuple[float, float]], JobDetails, tuple[int, Any]]]:
            if (begun := places.get(number, "")) is None:
                return
            counters = defaultdict[int, Iterator[int]](count)
            try:
                for job, place in self._of(readers_of(shard_place(number))).each_placed(begun):
                    rank = ranks[place[0], place[1]]
                    yield (rank, order(job, next(counters[rank]))), job, (number, place)
            except BrokerError as error:
                if self._shards.is_strict:
                    raise
                self._shards.silent[number] = SilentShard(number, utc_now(), str(error))

        for _, job, (number, place) in heapq.merge(*map(ordered, self._shards.answering()), key=itemgetter(0)):
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

    def all(self) -> tuple[dict[str, TaskMetrics], list[QueueDetails]]:
        every = self._shards.every(lambda readers: readers.tasks.all())
        names = sorted(set().union(*(metrics for metrics, _ in every)))
        return (
            {name: merge(metrics[name] for metrics, _ in every if name in metrics) for name in names},
            merge_by("name", chain.from_iterable(queues for _, queues in every)),
        )


class _Memory(_Merged, MemoryReader):
    read = _each("memory.read", lambda lists: sorted(merge_by("name", chain(*lists)), key=lambda row: -row.total))
