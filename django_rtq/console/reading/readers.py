"""The readers of a Redis: what people see of queues, jobs and workers, and the parts with which nouns act."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django_rtq.console.merging import ONE, by
from django_rtq.console.reading.actions import Actions
from django_rtq.console.reading.clients import ClientReader
from django_rtq.console.reading.details import QueueDetails, WorkerDetails
from django_rtq.console.reading.jobs.dead_letters import DeadLetters
from django_rtq.console.reading.jobs.waiting_reason import QueuePosition, find_with_position
from django_rtq.console.reading.jobs.walk import JobWalk, List
from django_rtq.console.reading.memory import MemoryReader
from django_rtq.console.reading.metrics.reader import (
    Deploy,
    VersionRuns,
    deploys_of,
    merged_versions,
)
from django_rtq.console.reading.metrics.time_series import Series, merge_series
from django_rtq.console.reading.overview import OverviewReader
from django_rtq.console.reading.queues import QueueReader, asking, read_queue_details, together
from django_rtq.console.reading.selection import ALL_JOBS, Selection
from django_rtq.console.reading.sweep import Sweeper
from django_rtq.console.reading.task_details import TaskReader
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker, on_brokers_forgotten
from django_rtq.core.broker.one_job import find
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.details import JobDetails, read_found

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeQueue:
    """A queue, and what became of its jobs lately."""

    details: QueueDetails = field(metadata=ONE)
    series: Series = field(metadata=by(merge_series))  # of the last hour
    versions: list[VersionRuns] = field(metadata=by(merged_versions))  # the newest first; none without RTQ["VERSION"]
    deploys: list[Deploy]  # the same


class SilentShard(NamedTuple):
    """A shard that did not answer."""

    number: int
    since: datetime  # when this process noticed it
    error: str  # "": it has not answered yet


class Readers:
    """What reads the queues of a broker. Any thread may use it."""

    is_of_all_shards = False
    silent: Mapping[int, SilentShard] = {}  # shards that have not answered: nobody knows what they have

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.place = broker.backend  # of all shards: that of shard 0, for what is there only
        self._redis, self._keys = broker.redis, broker.keys
        self.queues = QueueReader(broker)
        self.overview = OverviewReader(broker)
        self.dead_letters = DeadLetters(broker)
        self.clients = ClientReader(broker)
        self.actions = Actions(broker)
        self.sweeps = Sweeper(broker)
        self.tasks = TaskReader(broker)
        self.memory = MemoryReader(broker)

    # -- places

    @property
    def places(self) -> list[str]:
        """What it is about: one, or all shards."""
        return [self.place]

    def every(self, read: Callable[[Readers], T]) -> list[T]:
        """What it reads; with the readers of all shards, in each of those that answer, at once if a page waits."""
        return [read(self)]

    def in_each_shard(self, do: Callable[[Readers], T]) -> list[T]:
        """Do it; with the readers of all shards, in each of them. Returns the results."""
        return [do(self)]

    def in_places(self, places: Iterable[str], read: Callable[[str], T]) -> dict[str, T]:
        """What is in these places. With the readers of all shards, one that does not answer is left out."""
        return {place: read(place) for place in places}

    # -- look

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """All that is known of a job, in any queue; in the named one first. Raises JobNotFound."""
        return self._redis.run(find(self.broker, job_id, queue))

    def find_with_position(self, job_id: str, queue: str | None = None) -> tuple[JobDetails, QueuePosition]:
        """find() with the lines that the job logged, and what it waits for if it waits. Raises JobNotFound."""
        return self._redis.run(find_with_position(self.broker, job_id, queue))

    def states_of(self, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The states of many jobs, given as (queue, id), in one round trip. Unknown jobs are left out."""
        calls = [SCRIPTS["find_job"].call(self._keys.of(queue), (job_id,)) for queue, job_id in jobs]
        replies = self._redis.execute(calls, resend=True)
        details = [read_found(job_id, queue, reply) for (queue, job_id), reply in zip(jobs, replies, strict=True)]
        return {(job.queue, job.id): str(job.state) for job in details if job}

    def workers(self, queues: Collection[str] | None = None, *, with_usual: bool = False) -> list[WorkerDetails]:
        """The workers of these queues and the jobs that they run; of all queues, if none is named.

        `with_usual` adds to each job how long its task usually runs.
        """
        return self.overview.workers(queues, with_usual=with_usual)

    def search(self, lists: Sequence[List], filter: Selection = ALL_JOBS, **options: Any) -> JobWalk:
        """Some lists of jobs, each a queue and a state. The options are those of a JobWalk."""
        return JobWalk(self.broker, lists, filter, **options)

    def queue(self, name: str) -> WholeQueue:
        """A queue, in one round trip."""
        keys, now_ms = self._keys.of(name), time.time_ns() // 1_000_000
        calls = [SCRIPTS["queue_overview"].call(keys, ()), SCRIPTS["task_history"].call(keys, (0, "", 0, 1))]
        read = together(asking({name: calls}), self.overview.series.last_hours([name], now_ms), deploys_of(self.broker))
        replies, (series,), deploys = self._redis.run(read)
        details, (_mark, _now, versions, *_lines) = replies[name]
        return WholeQueue(
            details=read_queue_details(name, details),
            series=series,
            versions=VersionRuns.read_all(versions),
            deploys=deploys,
        )


def readers_of(backend: str = "") -> Readers:
    """The readers of this process for a backend in TASKS; "": for RTQ["REDIS"]. Raises ConfigurationError."""
    return _readers_of(get_broker(backend))


_readers_of = cache(Readers)

on_brokers_forgotten.append(_readers_of.cache_clear)  # or else the brokers would live on, with their connections
