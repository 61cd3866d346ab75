"""The Readers: what people see of queues, jobs and workers, and what they do with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django_rtq.console.reading.actions import ACTIONS, LATEST, Actions, How, changed_body
from django_rtq.console.reading.clients.client_states import ClientInQueue
from django_rtq.console.reading.clients.clients import ClientReader
from django_rtq.console.reading.details import QueueDetails, WorkerDetails
from django_rtq.console.reading.jobs.dead_letters import DeadLetters
from django_rtq.console.reading.jobs.job_filter import ALL_JOBS, JobFilter
from django_rtq.console.reading.jobs.job_list import JobListReader
from django_rtq.console.reading.jobs.job_page import JobPage
from django_rtq.console.reading.jobs.queue_position import QueuePosition, find_with_position
from django_rtq.console.reading.jobs.walk import JobWalk, Shown
from django_rtq.console.reading.memory import MemoryReader
from django_rtq.console.reading.metrics.reader import Deploy, VersionRuns, deploy_commands, read_deploys
from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.reading.overview import OverviewReader
from django_rtq.console.reading.queues import QueueReader, read_queue_details
from django_rtq.console.reading.shared_overview import SharedOverview
from django_rtq.console.reading.sweep import Sweeper
from django_rtq.console.reading.task_details import TaskReader
from django_rtq.console.reading.task_pauses import TaskPauses
from django_rtq.core import signals
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker, on_brokers_forgotten
from django_rtq.core.broker.control import WorkerCommand, send_command, supervisor_of
from django_rtq.core.broker.one_job import JobAccess, check_id
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.broker.scripts import AT_ONCE, SCRIPTS
from django_rtq.core.broker.server_info import ServerDetails, ask_server
from django_rtq.core.jobs.details import JobDetails, read_found
from django_rtq.core.jobs.job import JobState
from django_rtq.exceptions import JobNotFound, LeaseNotExpired, WorkerNotFound, WrongState
from django_rtq.limits.limits import LimitEditor

T = TypeVar("T")
MOST_CLIENTS = 20  # of the page of a queue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """A queue, a page of its jobs, its clients, and its last hour."""

    details: QueueDetails
    page: JobPage
    clients: Sequence[ClientInQueue]
    versions: list[VersionRuns]  # of the project, the newest first; none without RTQ["VERSION"]
    series: Series
    deploys: list[Deploy]  # the newest first; none without RTQ["VERSION"]


class Readers(JobAccess):
    """Reads the queues of a broker, and acts on their jobs. Any thread may use it.

    The actions are methods; lists, metrics and the like are read through the readers that it owns.
    """

    is_of_all_shards = False

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.place = broker.backend  # of all shards: that of shard 0, for what is there only
        self._redis, self._keys = broker.redis, broker.keys
        self.queues = QueueReader(broker)
        self.overview = OverviewReader(broker)
        self.shared_overview = SharedOverview(self.overview)
        self.job_list = JobListReader(broker)
        self.dead_letters = DeadLetters(broker)
        self.limits = LimitEditor(broker)
        self.clients = ClientReader(broker)
        self.actions = Actions(broker, Readers)
        self.sweeps = Sweeper(broker, self.actions)
        self.tasks = TaskReader(broker)
        self.memory = MemoryReader(broker)
        self.task_pauses = TaskPauses(broker)

    # -- places

    @property
    def places(self) -> list[str]:
        """What it is about: one, or all shards."""
        return [self.place]

    def in_each_shard(self, do: Callable[[Readers], T]) -> list[T]:
        """Do it; with the readers of all shards, in each of them. Returns the results."""
        return [do(self)]

    def in_places(self, places: Iterable[str], read: Callable[[str], T]) -> dict[str, T]:
        """What is in these places. With the readers of all shards, one that does not answer is left out."""
        return {place: read(place) for place in places}

    # -- look

    def find_with_position(self, job_id: str, queue: str | None = None) -> tuple[JobDetails, QueuePosition]:
        """find() with the lines that the job logged, and what it waits for if it waits. Raises JobNotFound."""
        return self._redis.run(find_with_position(self._broker, job_id, queue))

    def states_of(self, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The states of many jobs, given as (queue, id), in one round trip. Unknown jobs are left out."""
        calls = [SCRIPTS["find_job"].call(self._keys.of(queue), (job_id,)) for queue, job_id in jobs]
        replies = self._redis.execute(calls, resend=True)
        details = [read_found(job_id, queue, reply) for (queue, job_id), reply in zip(jobs, replies, strict=True)]
        return {(job.queue, job.id): str(job.state) for job in details if job}

    def workers(self, queues: Iterable[str] | None = None, *, with_usual: bool = False) -> list[WorkerDetails]:
        """The workers of these queues and the jobs that they run; of all queues, if none is named.

        `with_usual` adds to each job how long its task usually runs: see RunningJob.looks_hung().
        """
        return self.overview.workers(queues, with_usual=with_usual)

    def queue_page(
        self,
        queue: str,
        state: str,
        *,
        cursor: str = "",
        limit: int = 50,
        filter: JobFilter = ALL_JOBS,
        shown: Shown = lambda job: job,
    ) -> QueuePage:
        """queues.get(), job_list.page() and clients.busiest() at once: one round trip, more with some filters."""
        keys, history, now_ms = self._keys.of(queue), self.overview.series, time.time_ns() // 1_000_000
        walk = JobWalk(self._broker, [(queue, state)], filter, shown=shown)
        walk.also = [
            SCRIPTS["queue_overview"].call(keys, ()),
            self.clients.busiest_command(queue, MOST_CLIENTS),
            SCRIPTS["task_history"].call(keys, (0, "", "")),
            history.command(queue, 60, 1, now_ms),
            *deploy_commands(self._broker),
        ]
        page = walk.page(cursor, limit)
        details, busiest, (_mark, _now, versions, *_lines), minutes, *deploys = walk.replies
        return QueuePage(
            details=read_queue_details(queue, details),
            page=page,
            clients=self.clients.read_busiest(queue, busiest, MOST_CLIENTS),
            versions=VersionRuns.read_all(versions),
            series=history.read(queue, 60, 1, minutes),
            deploys=read_deploys(deploys),
        )

    def server(self) -> ServerDetails:
        """The state of the Redis server. Raises BrokerRefused, and ConfigurationError for a Redis Cluster."""
        return ask_server(self._redis, self._keys)

    # -- act on jobs

    def quiet_worker(self, worker: str, *, by: str = "") -> None:
        """Ask the rtq_worker of this worker to claim no more jobs until wake_worker(). Raises WorkerNotFound.

        `by`: who asks, for other people.
        """
        self._send(worker, WorkerCommand.QUIET, by=by)

    def wake_worker(self, worker: str) -> None:
        """Ask a quiet rtq_worker to claim jobs again. Raises WorkerNotFound."""
        self._send(worker, WorkerCommand.WORK)

    def stop_worker(self, worker: str) -> None:
        """Ask the rtq_worker of this worker to finish running jobs and exit, as SIGTERM does. Raises WorkerNotFound."""
        self._send(worker, WorkerCommand.STOP)

    def requeue(self, queue: str, job_ids: Sequence[str], *, to: str = "", latest_ms: int = LATEST) -> list[str]:
        """Queue dead letters again, with all their attempts. Returns the ids of those that were queued.

        The others are not dead (any more), or are unique and another job holds their place. `to`: another queue, where
        they go. Limits of waiting jobs refuse none. Raises ValueError for one that settings do not name, or that is in
        another shard.
        """
        return self.actions.done("requeue", queue, job_ids, How(latest_ms=latest_ms, target=to))

    def requeue_changed(
        self, queue: str, job_id: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, latest_ms: int = LATEST
    ) -> None:
        """Queue a dead letter again with other arguments, which the caller has checked.

        Raises Unserializable or PayloadTooLarge for arguments that cannot be stored, and WrongState if the job is not
        dead.
        """
        job = self.find(job_id, queue)
        if job.state is not JobState.DEAD or not job.task:
            raise WrongState(job_id, f"is {job.state}, not dead." if job.task else "cannot be read.")
        body = changed_body(job, args, kwargs, most_bytes=self._broker.config.max_payload_bytes)
        if not self.actions.done("requeue", queue, [job_id], How(latest_ms=latest_ms, body=body)):
            raise WrongState(
                job_id, "is not dead any more, has died again, or is unique and another job of the same key is alive."
            )

    def discard(self, queue: str, job_ids: Sequence[str], *, latest_ms: int = LATEST) -> list[str]:
        """Delete dead letters. Returns the ids that were dead."""
        return self.actions.done("discard", queue, job_ids, How(latest_ms=latest_ms))

    def run_now(self, job_id: str, queue: str | None = None) -> None:
        """Queue a scheduled or retrying job now.

        Raises JobNotFound, and WrongState for jobs in other states and for those that wait for the end of a job of the
        same unique key (G9).
        """
        check_id(job_id)
        has_finished = False
        for name in self._names(queue):
            answer = self.actions.act("run_now", name, [job_id])[job_id]
            if answer == "queued":
                return
            if answer not in ("missing", "finished"):
                raise WrongState(job_id, ACTIONS["run_now"].why_not(answer))
            has_finished = has_finished or answer == "finished"  # or it was requeued in one of the others
        raise WrongState(job_id, ACTIONS["run_now"].why_not("finished")) if has_finished else JobNotFound(job_id)

    def reclaim_worker(self, worker: str, queues: Iterable[str] | None = None) -> list[str]:
        """Reclaim the jobs of a worker whose lease has expired, at once. Returns their ids. Raises LeaseNotExpired."""
        reclaimed: list[str] = []
        for name in self.queues.names() if queues is None else queues:
            left = 1
            while left:
                left, *words = self._call(name, "reclaim_child", (worker, AT_ONCE, "lapsed"))
                if left < 0:
                    raise LeaseNotExpired(worker)
                pairs = [word.decode() for word in words]
                reclaimed += pairs[::2]
                signals.send_reclaimed(Readers, name, worker, list(zip(pairs[::2], pairs[1::2], strict=True)))
        return reclaimed

    # -- act on queues

    def pause(self, queue: str, *, by: str = "") -> bool:
        """Pause a queue: no more of its jobs are claimed. False: it was paused already. `by`: who does it."""
        return bool(self._call(queue, "pause", ("", by)) == b"paused")

    def resume(self, queue: str) -> bool:
        """Resume a paused queue. False: it was not paused."""
        return bool(self._call(queue, "resume", ("", 0))[0] == b"resumed")

    def purge(self, queue: str, client: str | None = None) -> int:
        """Delete some waiting jobs, of one client if it is given. Returns how many, 0 at the end."""
        return self.sweeps.purge_some(queue, client)

    def forget(self, queue: str, *, discard_outcomes: bool = False, is_dry_run: bool = False) -> str:
        """Remove a queue from all lists. Returns "forgotten"; "missing": no list had it; or what it still has: "jobs",
        "paused", "limits", "workers", "recent" (jobs that finished lately may be sent again), "outcomes"."""
        return self._broker.maintenance.forget(queue, discard_outcomes=discard_outcomes, is_dry_run=is_dry_run)

    # -- inside

    def _names(self, queue: str | None) -> list[str]:
        return self.queues.names() if queue is None else [queue]

    def _send(self, worker: str, command: WorkerCommand, *, by: str = "") -> None:
        if not (supervisor := supervisor_of(self._broker, worker)):
            raise WorkerNotFound(worker)
        send_command(self._broker, supervisor, command, by=by)

    def _call(self, queue: str, name: str, arguments: Sequence[Argument]) -> Any:
        return self._redis.execute_one(SCRIPTS[name].call(self._keys.of(queue), arguments), resend=True)


def readers_of(backend: str = "") -> Readers:
    """The readers of this process for a backend in TASKS; "": for RTQ["REDIS"]. Raises ConfigurationError."""
    return _readers_of(get_broker(backend))


@cache
def _readers_of(broker: Broker) -> Readers:
    of_tests: Readers | None = getattr(broker, "access", None)
    return Readers(broker) if of_tests is None else of_tests


on_brokers_forgotten.append(_readers_of.cache_clear)  # or else the brokers would live on, with their connections
