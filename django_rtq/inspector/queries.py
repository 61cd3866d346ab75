"""The Queries: what people look at.

A question costs the same however long the queues are: O(1), or O(what it returns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django_rtq.broker.broker import MAINTAIN_AT_ONCE, Broker
from django_rtq.broker.redis.client import as_dict
from django_rtq.broker.redis.server_info import ServerDetails, ask_server
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import JobNotFound
from django_rtq.inspector.dead_letters import MAX_COUNTED, DeadGroups, DeadLetters, Selection
from django_rtq.inspector.details import JobDetails, QueueDetails, RawJob, WorkerDetails
from django_rtq.inspector.job_list import DEPTH, EVERY, JobFilter, JobListReader, JobPage, Row
from django_rtq.inspector.metrics import Clients, Statistics, TaskFigures
from django_rtq.inspector.overview import Overview, OverviewReader, queue_details
from django_rtq.inspector.queue_position import Standing
from django_rtq.inspector.ride import QueuePage, Ride
from django_rtq.inspector.time_series import Series


class Queries:
    """Looks at the queues of a broker, and changes nothing. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis = broker.redis
        self._keys = broker.keys
        self._lookout = OverviewReader(broker)
        self._listing = JobListReader(broker)
        self._statistics = Statistics(broker)
        self._sweeper = DeadLetters(broker)

    def queues(self) -> list[str]:
        """The names of all queues that were ever used, sorted."""
        return sorted(name.decode() for name in self._redis.execute_one(("SMEMBERS", self._keys.queues), resend=True))

    def overview(self, queues: Iterable[str] | None = None) -> list[QueueDetails]:
        """How full these queues are; of all, when none is named."""
        names = self.queues() if queues is None else list(queues)
        replies = self._redis.execute(
            [SCRIPTS["queue_overview"].call(self._keys.of(n), ()) for n in names], resend=True
        )
        return [queue_details(name, reply) for name, reply in zip(names, replies, strict=True)]

    def queue(self, name: str) -> QueueDetails:
        """How full one queue is; all zero for one that was never used."""
        return self.overview([name])[0]

    def front(self, minutes: int = 60, *, step: int | None = None) -> Overview:
        """All that an overview shows, in two round trips: with counters of so many minutes, an even number of steps."""
        minutes = max(1, min(minutes, 1440))
        return self._lookout.front(minutes, step or max(1, minutes // 60))

    def server(self) -> ServerDetails:
        """What the Redis server says of itself. Raises BrokerRefused, ConfigurationError for a Redis Cluster."""
        return ask_server(self._redis)

    def history(self, queue: str, minutes: int = 60, *, step: int | None = None) -> Series:
        """The counters of one queue, as in front()."""
        minutes = max(1, min(minutes, 1440))
        return self._lookout.history(queue, minutes, step or max(1, minutes // 60))

    def workers(self, queues: Iterable[str] | None = None) -> list[WorkerDetails]:
        """Who works on these queues, and what runs there."""
        return self._lookout.workers(None if queues is None else list(queues))

    def processing(self, queues: Iterable[str] | None = None) -> list[WorkerDetails]:
        """workers(), and of each job how long its task usually runs; see RunningJob.looks_hung()."""
        return self._lookout.workers(None if queues is None else list(queues), with_usual=True)

    def listing(
        self,
        queue: str,
        state: str,
        *,
        cursor: str = "",
        limit: int = 50,
        filter: JobFilter = EVERY,
        depth: int = DEPTH,
    ) -> JobPage:
        """A page of the jobs of a queue in one of LISTS. See there for their order."""
        return self._listing.page(queue, state, cursor, limit, filter, depth)

    def clients(self, queue: str, limit: int = 50, *, by: str = "queued") -> Clients:
        """The clients with most jobs that wait (by="queued"), or with most of the work lately (by="share")."""
        return self._statistics.clients(queue, limit, by=by)

    def queue_page(
        self, queue: str, state: str, *, cursor: str = "", limit: int = 50, filter: JobFilter = EVERY, clients: int = 20
    ) -> QueuePage:
        """queue(), listing() and clients() at once: two round trips, where the filter asks for no more."""
        keys = self._keys.of(queue)
        ride = Ride(
            self._redis, [SCRIPTS["queue_overview"].call(keys, ()), self._statistics.ask_for_clients(queue, clients)]
        )
        page = JobListReader(self._broker, ride).page(queue, state, cursor, limit, filter, DEPTH)
        overview, served = ride.answers
        return QueuePage(
            details=queue_details(queue, overview),
            page=page,
            clients=self._statistics.read_clients(served, clients, by="queued"),
        )

    def tasks(self, hours: int = 1, queues: Iterable[str] | None = None) -> dict[str, TaskFigures]:
        """How tasks did in the present hour and so many before it, by their names."""
        return self._statistics.tasks(self.queues() if queues is None else queues, max(0, min(hours, 48)))

    def dead_groups(self, queue: str, depth: int = DEPTH) -> DeadGroups:
        """The newest dead letters by task and kind of error, in one round trip; the first time in two."""
        return self._sweeper.groups([queue], depth)[queue]

    def all_dead_groups(self, depth: int = DEPTH) -> dict[str, DeadGroups]:
        """dead_groups() of every queue, in two round trips; the first time in three."""
        return self._sweeper.groups(self.queues(), depth)

    def select(
        self,
        queue: str,
        filter: JobFilter = EVERY,
        *,
        until_ms: int | None = None,
        depth: int = MAX_COUNTED,
        show: Callable[[int], object] | None = None,
    ) -> Selection:
        """Count the dead letters that a bulk action would be about: those that died up to a moment; None: up to now."""
        return self._sweeper.select(queue, filter, until_ms, depth, show)

    def find(self, job_id: str, queue: str | None = None) -> JobDetails:
        """All that is known of a job. Raises JobNotFound."""
        return self.find_any(job_id, self.queues() if queue is None else [queue])

    def find_any(self, job_id: str, queues: Iterable[str]) -> JobDetails:
        """find() in several queues, in one round trip. Raises JobNotFound."""
        names, script = list(queues), SCRIPTS["find_job"]
        replies = self._redis.execute([script.call(self._keys.of(name), (job_id,)) for name in names], resend=True)
        return _found(job_id, dict(zip(names, replies, strict=True)))

    def find_standing(self, job_id: str, queue: str | None = None) -> tuple[JobDetails, Standing]:
        """find(), and what the job waits for if it waits, in one round trip. Raises JobNotFound."""
        names = self.queues() if queue is None else [queue]
        calls = [
            SCRIPTS[script].call(self._keys.of(n), (job_id,))
            for n in names
            for script in ("find_job", "queue_position")
        ]
        replies = self._redis.execute(calls, resend=True)
        details = _found(job_id, dict(zip(names, replies[::2], strict=True)))
        return details, Standing.read(replies[2 * names.index(details.queue) + 1])

    def states_of(self, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The states of many jobs, (queue, id) each, in one round trip; those that are not known are left out."""
        script = SCRIPTS["find_job"]
        replies = self._redis.execute([script.call(self._keys.of(queue), (job,)) for queue, job in jobs], resend=True)
        raw = [
            RawJob(id=job, queue=queue, **dict(zip(_FIND, reply, strict=True)))
            for (queue, job), reply in zip(jobs, replies, strict=True)
        ]
        found = [job.details() for job in raw]
        return {(job.queue, job.id): str(job.state) for job in found if job}

    def dead(self, queue: str, *, page: int = MAINTAIN_AT_ONCE) -> Iterator[JobDetails]:
        """The dead letters of a queue, the newest first; those that die meanwhile are left out.

        They may be requeued or discarded while this goes on.
        """
        at: tuple[Any, ...] = ()
        key, is_last = self._keys.of(queue).dead, False
        while not is_last:
            pairs, is_last = self._listing.scored(key, at, page, is_newest_first=True)
            rows = [Row(job_id, (score, job_id.decode()), {"died": b"%d" % score}) for score, job_id in pairs]
            for row, job in self._listing.opened(queue, rows):
                at = row.cursor
                if job is not None:
                    yield job

    def statistics(self, queue: str, *, minutes: int = 60) -> dict[int, dict[str, int]]:
        """The counters of the last minutes: minute since 1970 -> name -> number."""
        (time,) = self._redis.execute([("TIME",)], resend=True)
        last = int(time[0]) // 60
        wanted = range(last - minutes + 1, last + 1)
        keys = self._keys.of(queue)
        replies = self._redis.execute([("HGETALL", keys.stats_of(minute)) for minute in wanted], resend=True)
        return {
            minute: {name.decode(): int(n) for name, n in as_dict(reply).items()}
            for minute, reply in zip(wanted, replies, strict=True)
            if reply
        }


def _found(job_id: str, replies: Mapping[str, Any]) -> JobDetails:
    """The job, by what the script `find` answered in each queue. Raises JobNotFound."""
    for name, reply in replies.items():
        details = RawJob(id=job_id, queue=name, **dict(zip(_FIND, reply, strict=True))).details()
        if details:
            return details
    raise JobNotFound(job_id)


_FIND = "record due died failures crashes errors outcome finished worker held lease now_ms wish progress kept".split()
