"""The data of the overview: queues, workers and server. Takes the same time however many jobs there are."""

from __future__ import annotations

import math
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django_rtq.console.merging import COUNTS, JOINED, MOST, ONE, SUM, by, most, rows_by, total
from django_rtq.console.reading.details import QueueDetails, RunningJob, UnknownTask, WorkerDetails
from django_rtq.console.reading.jobs.dead_letters import read_dead_letter
from django_rtq.console.reading.metrics.reader import (
    Deploy,
    TaskHours,
    deploys_of,
)
from django_rtq.console.reading.metrics.task_failures import (
    LATELY,
    LEAST_IN_A_ROW,
    TaskFailures,
    read_task_failures,
)
from django_rtq.console.reading.metrics.time_series import Series, TimeSeriesReader, merge_series
from django_rtq.console.reading.queues import asking, read_queue_details, together
from django_rtq.console.server_info import ServerDetails, read_server
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QueueKeys, read_queue_names
from django_rtq.core.broker.redis.client import as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.server_info import check_format, read_format
from django_rtq.core.broker.task_backends import shard_of
from django_rtq.core.jobs.details import JobDetails, Progress
from django_rtq.core.jobs.job import clock_moment, moment
from django_rtq.core.jobs.record import read_head, read_leniently
from django_rtq.exceptions import BrokerError
from django_rtq.workflows.store import MOST_STUCK, STATE_PLACE, STATES, scores_of

MAX_RUNNING_SHOWN = 1000  # running jobs of a queue
SHARED_SECONDS = 1.0  # for which viewers share an overview, at least
REST = 5  # times as long as the last read took, it is not read again: a fifth of a large Redis is enough for it
GLANCE_SECONDS = 10.0  # for which a shared one is young
HISTORY_SECONDS = 60.0  # counters of steps longer than a minute
USUAL_HOURS = 6  # hours before the current one that say how long tasks usually run
USUAL_SECONDS = 60.0  # for so long that is not read again
UNSCHEDULED = 120.0  # seconds without a look for due jobs; a scheduler looks at least once a minute
REFUSED_MS = 60_000  # for so long after it refused commands a server is full, whatever it uses now
_HEAD_BYTES = 400  # read of a record: enough for its header and the name of its task
_FAILURE_BYTES = 4000  # the same, of the newest failures: their arguments are needed to hide secrets in messages
_LIMIT = re.compile(rb'"time_limit":([0-9.e+]+)')


class BusiestClient(NamedTuple):
    """The client whose jobs had most run time in the last hour."""

    client: str
    share: float  # of the run time of all jobs of the queue, 0 to 1
    others_wait_seconds: float = 0.0  # for how long the oldest job of another client has been waiting that might start

    @classmethod
    def read(cls, reply: Sequence[Any]) -> BusiestClient | None:
        """A part of the reply of queue_activity."""
        if not reply or not reply[2]:
            return None
        return cls(reply[0].decode(errors="replace"), reply[1] / reply[2], reply[3] / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue and its recent activity."""

    details: QueueDetails = field(metadata=ONE)
    series: Series = field(metadata=by(merge_series))  # the last hour by the minute
    slots: int = field(metadata=SUM)  # jobs that its workers can run at once; they may also serve other queues
    task_failures: Mapping[str, TaskFailures] = field(default_factory=dict)  # task name -> its last runs, if any failed
    newest_dead: JobDetails | None = None  # only the fields that a summary shows
    newest_retrying: JobDetails | None = None  # the one with the latest next attempt
    unknown_tasks: Sequence[UnknownTask] = ()  # of which jobs came that workers did not know
    busiest: BusiestClient | None = None  # None: nothing ran lately, or jobs of fewer than two clients wait

    def lately(self, name: str) -> int:
        """A counter of the last minutes."""
        return self.series.total(name, LATELY)

    def per_minute(self, name: str) -> float:
        """The same, in a minute."""
        return self.lately(name) / LATELY

    @property
    def utilisation(self) -> float | None:
        """The share of the slots that its jobs used recently, 0 to 1; None: no slots."""
        return min(1.0, self.per_minute("run_ms") / 60_000 / self.slots) if self.slots else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedWorkflow:
    """A workflow that waits until somebody does something about its dead jobs."""

    id: str
    name: str
    since: datetime  # by the clock of Redis


_LONGEST_FIRST = by(lambda lists: sorted(chain(*lists), key=lambda flow: flow.since))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStates:
    """All workflows that are kept: how many are in which state, and which of them are blocked."""

    counts: Mapping[str, int] = field(default_factory=dict, metadata=COUNTS)  # state -> how many
    blocked: Sequence[BlockedWorkflow] = field(default=(), metadata=_LONGEST_FIRST)
    #: Nobody knows how some of their jobs have ended.
    stuck: Sequence[BlockedWorkflow] = field(default=(), metadata=_LONGEST_FIRST)


def workflow_states(broker: Broker) -> Steps[WorkflowStates]:
    """Read those of all workflows. One round trip."""
    keys = broker.keys.of(broker.config.default_queue)
    key = keys.workflow_states
    commands: list[Command] = [("ZCOUNT", key, *scores_of(state)) for state in STATES]
    commands.append(("ZRANGEBYSCORE", key, *scores_of("blocked"), "WITHSCORES", "LIMIT", 0, MOST_STUCK))
    commands.append(("ZRANGE", keys.stuck_workflows, 0, MOST_STUCK - 1, "WITHSCORES"))
    *counts, blocked, stuck = checked((yield commands))
    return WorkflowStates(
        counts=dict(zip(STATES, counts, strict=True)),
        blocked=_workflows_since(blocked, STATE_PLACE),
        stuck=_workflows_since(stuck, 0),
    )


def _workflows_since(members: Sequence[bytes], place: int) -> list[BlockedWorkflow]:
    flows = []
    for member, score in zip(members[::2], members[1::2], strict=True):
        workflow, _, name = member.decode(errors="replace").partition(" ")
        flows.append(BlockedWorkflow(id=workflow, name=name, since=clock_moment(int(float(score)) - place)))
    return flows


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All data of the overview."""

    now: datetime = field(metadata=MOST)  # the server's time
    queues: list[QueueRow] = field(metadata=rows_by("details.name"))
    workers: list[WorkerDetails] = field(metadata=JOINED)
    #: Of several, but for its memory, the first.
    server: ServerDetails = field(
        metadata=by(lambda every: replace(every[0], used_memory=total(server.used_memory for server in every)))
    )
    #: Queues in which no scheduler has looked for due jobs lately.
    unscheduled: list[str] = field(default_factory=list, metadata=by(lambda lists: sorted({*chain(*lists)})))
    deploys: list[Deploy] = field(default_factory=list)  # the newest first; none without RTQ["VERSION"]
    workflows: WorkflowStates = field(default_factory=WorkflowStates, metadata=ONE)

    @property
    def scheduler_seconds(self) -> float | None:
        """Since a scheduler looked for due jobs, in the queue where that is longest ago."""
        return most(row.details.scheduler_seconds for row in self.queues)

    @property
    def living(self) -> list[WorkerDetails]:
        """The workers whose leases have not expired."""
        return [worker for worker in self.workers if not worker.is_lost]


class OverviewReader:
    """Reads the overview. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._redis, self._keys, self._shard = broker.redis, broker.keys, shard_of(broker.backend)
        self.series = TimeSeriesReader(broker)
        self._hours = TaskHours(broker, USUAL_HOURS)
        self._usual: tuple[float, dict[str, float | None]] = (-math.inf, {})  # time.monotonic(), by task
        self._refused = (-1, -REFUSED_MS)  # what the server refused, and when that was seen to grow, ms
        self._lock = threading.Lock()
        self._latest: Overview | BrokerError | None = None
        self._latest_at = self._until = 0.0
        self._history: dict[tuple[int, int], tuple[float, list[str], list[Series]]] = {}

    def read(self) -> Overview:
        """The overview in two round trips, however many queues and workers there are. How long tasks usually run is
        read once a minute, if a job runs."""
        overview = self._redis.run(self._overview())
        names = [row.details.name for row in overview.queues]
        return replace(overview, workers=self._with_usual(overview.workers, names))

    def _overview(self) -> Steps[Overview]:
        (names, known), server = yield from together(self._names(), self._server())
        workers, replies, hours, deploys, workflows = yield from together(
            self._workers(names, known),
            asking({name: self._commands(self._keys.of(name)) for name in names}),
            self.series.last_hours(names, server.now_ms),
            deploys_of(self._broker),
            workflow_states(self._broker),
        )
        slots = Counter[str]()
        for worker in workers:
            slots.update(dict.fromkeys(worker.queues, worker.slots))
        rows = [
            QueueRow(
                details=read_queue_details(name, overview),
                series=series,
                slots=slots[name],
                task_failures=read_task_failures(in_a_row, periods),
                newest_dead=_latest(name, dead),
                newest_retrying=_latest(name, retrying),
                unknown_tasks=UnknownTask.read_all(as_dict(noted), overview[0]),
                busiest=BusiestClient.read(busiest),
            )
            for (name, (overview, (in_a_row, periods, dead, retrying, busiest), noted)), series in zip(
                replies.items(), hours, strict=True
            )
        ]
        scheduled = {row.details.name: row.details.scheduler_seconds for row in rows}
        return Overview(
            now=clock_moment(max((overview[0] for overview, *_ in replies.values()), default=server.now_ms)),
            queues=rows,
            workers=workers,
            server=server,
            unscheduled=[name for name, ago in scheduled.items() if ago is None or ago > UNSCHEDULED],
            deploys=deploys,
            workflows=workflows,
        )

    def workers(self, queues: Iterable[str] | None = None, *, with_usual: bool = False) -> list[WorkerDetails]:
        """The workers of these queues and the jobs that they run. See Readers.workers()."""

        def read() -> Steps[tuple[list[str], list[WorkerDetails]]]:
            names, known = yield from self._names()
            return names, (yield from self._workers(names if queues is None else queues, known))

        names, workers = self._redis.run(read())
        return self._with_usual(workers, names) if with_usual else workers

    def _workers(self, queues: Iterable[str], known: Iterable[bytes]) -> Steps[list[WorkerDetails]]:
        names, script, arguments = list(queues), SCRIPTS["list_running"], (MAX_RUNNING_SHOWN, _HEAD_BYTES)
        notes = {worker.decode(): self._keys.worker(worker.decode()) for worker in known}
        calls: list[Command] = [script.call(self._keys.of(name), arguments) for name in names]
        replies = yield from asking(
            {"": calls, **{name: [("HGETALL", key), ("PTTL", key)] for name, key in notes.items()}}
        )
        return _read_workers(dict(zip(names, replies.pop(""), strict=True)), replies, self._shard)

    # -- for the pages of the admin

    def shared(self, *, fresh: bool = False) -> Overview:
        """The overview, about a second old at most; `fresh`: read now.

        Raises BrokerError. If a read fails, those who wait for it get the same error.
        """
        asked_at = time.monotonic()
        with self._lock:
            if self._latest is None or (self._latest_at < asked_at if fresh else self._until <= asked_at):
                began_at = time.monotonic()
                try:
                    self._latest = self.read()
                except BrokerError as error:
                    self._latest = error
                now = self._latest_at = time.monotonic()
                self._until = now + max(SHARED_SECONDS, REST * (now - began_at))
            if isinstance(self._latest, BrokerError):
                raise self._latest
            return self._latest

    def glance(self) -> Overview | None:
        """The last overview if it is young, without asking Redis."""
        latest, age = self._latest, time.monotonic() - self._latest_at
        return latest if isinstance(latest, Overview) and age < GLANCE_SECONDS else None

    def history(self, minutes: int, step: int) -> list[Series]:
        """The counters of all queues, up to a minute old."""
        overview = self.shared()
        names, key = [row.details.name for row in overview.queues], (minutes, step)
        at, of, series = self._history.get(key, (0.0, [], []))
        if of != names or time.monotonic() - at >= HISTORY_SECONDS:
            series = self.series.history(names, minutes, step, int(overview.now.timestamp() * 1000))
            self._history[key] = (time.monotonic(), names, series)
        return series

    # -- inside

    def _names(self) -> Steps[tuple[list[str], list[bytes]]]:
        """Read the names of all queues and workers."""
        commands: list[Command] = [("SMEMBERS", self._keys.queues), ("ZRANGE", self._keys.workers, 0, -1)]
        queues, workers, stored_format = checked((yield [*commands, read_format(self._keys)]))
        check_format(stored_format, self._keys)
        return read_queue_names(queues), workers

    def _server(self) -> Steps[ServerDetails]:
        commands: list[Command] = [("INFO",), ("TIME",), ("GET", self._keys.data_lost)]
        info, *replies = yield commands
        time, lost = checked(replies)
        server = read_server(b"" if isinstance(info, BrokerError) else info, clock_ms(time))
        return self._with_refusals(replace(server, data_lost_ms=int(lost) if lost else None))

    @staticmethod
    def _commands(keys: QueueKeys) -> list[Command]:
        activity = SCRIPTS["queue_activity"].call(keys, (LATELY, LEAST_IN_A_ROW, _FAILURE_BYTES))
        return [SCRIPTS["queue_overview"].call(keys, ()), activity, ("HGETALL", keys.unknown_tasks)]

    def _with_refusals(self, server: ServerDetails) -> ServerDetails:
        """With the warning "full" if it has refused commands since this reader last looked."""
        if not server.is_known:
            return server
        known, grew_ms = self._refused
        grew_ms = server.now_ms if 0 <= known < server.refused else grew_ms
        self._refused = (server.refused, grew_ms)
        if server.now_ms - grew_ms >= REFUSED_MS or "full" in server.warnings:
            return server
        return replace(server, warnings=["full", *(name for name in server.warnings if name != "nearly_full")])

    def _with_usual(self, workers: list[WorkerDetails], queues: Sequence[str]) -> list[WorkerDetails]:
        """Add to each running job how long its task usually runs, in all queues together; up to a minute old."""
        if not any(worker.running for worker in workers):
            return workers
        at, usual = self._usual
        if time.monotonic() - at >= USUAL_SECONDS:
            usual = {task: metrics.run_p95 for task, metrics in self._hours.read(queues).items()}
            self._usual = (time.monotonic(), usual)
        return [
            replace(worker, running=[replace(job, usual_seconds=usual.get(job.task)) for job in worker.running])
            for worker in workers
        ]


def _read_workers(queues: Mapping[str, Any], notes: Mapping[str, list[Any]], shard: int | None) -> list[WorkerDetails]:
    leases: dict[bytes, float] = {}
    running: dict[bytes, list[RunningJob]] = {}
    held_by: Counter[bytes] = Counter()
    listed: dict[bytes, list[str]] = {}
    for queue, (now_ms, *entries) in queues.items():
        # One for each process that serves the queue: thousands in a large installation.
        for worker, lease_ms, count, *held in entries:
            listed.setdefault(worker, []).append(queue)
            leases[worker] = min(leases.get(worker, lease_ms), lease_ms)
            if count:
                held_by[worker] += count
                jobs = _running(queue, worker.decode(), lease_ms, held, now_ms)
                running.setdefault(worker, []).extend(jobs)
    return [
        _worker_details(
            name,
            notes.get(name) or [(), -1],
            leases[worker],
            running=running.get(worker, []),
            queues=listed[worker],
            held=held_by[worker],
            shard=shard,
        )
        for name, worker in sorted((worker.decode(), worker) for worker in leases)
    ]


def _latest(queue: str, found: Sequence[bytes]) -> JobDetails | None:
    if not found:
        return None
    job_id, record, failure = found
    job, call = read_dead_letter(queue, job_id, record, failure), read_leniently(record)[1]
    if not call and job.errors:
        # Without its arguments nobody knows what is secret in the message.
        job = replace(job, errors=[{**job.errors[-1], "error": ""}])
    return replace(job, args=call.get("args", []), kwargs=call.get("kwargs", {}), headers=call.get("headers", {}))


def _running(queue: str, worker: str, lease_ms: float, held: Iterable[Any], now_ms: int) -> Iterable[RunningJob]:
    for job_id, claim, head, wish, progress in held:
        attempt, claimed_ms = claim.split(b" ", 2)[:2]
        client, task = read_head(head)
        limit = _LIMIT.search(head)
        yield RunningJob(
            id=job_id.decode(),
            queue=queue,
            task=task,
            client=client or "",
            attempt=int(attempt),
            seconds=max(0.0, (now_ms - int(claimed_ms)) / 1000),
            worker=worker,
            claimed_at=moment(int(claimed_ms)),
            lease_left_seconds=float(lease_ms) / 1000,
            time_limit=float(limit[1]) if limit else None,
            progress=Progress.read(progress) if progress else None,
            is_stopping=bool(wish),
        )


def _worker_details(name: str, stored: Sequence[Any], lease_ms: float, **known: Any) -> WorkerDetails:
    """A worker, from its note. One that was lost may have none any more: where it ran is told by its name then."""
    note, left_ms = stored  # and for how long it is kept
    noted = {field.decode(): text.decode(errors="replace") for field, text in as_dict(note).items()}
    if lease_ms < 0 and not noted:
        host, pid, *_rest = (*name.split(":"), "")
        noted = {"host": host, "pid": pid if pid.isdecimal() else ""}
    last_seen = max(0.0, (int(noted["kept_ms"]) - left_ms) / 1000) if "kept_ms" in noted else None

    def names(field: str) -> list[str]:
        return [each for each in noted.get(field, "").split(",") if each]

    def ago(field: str) -> float | None:
        then = noted.get(field)
        return float(then) + last_seen if then and last_seen is not None else None

    is_quiet = noted.get("quiet") == "1"
    texts: dict[str, Any] = {field: noted.get(field, "") for field in _TEXTS}
    numbers: dict[str, Any] = {field: int(noted.get(field) or least) for field, least in _NUMBERS.items()}
    return WorkerDetails(
        **{**known, "queues": names("queues") or known["queues"]},
        **texts,
        **numbers,
        name=name,
        last_seen_seconds=last_seen,
        last_claim_seconds=ago("claim_seconds"),
        lease_left_seconds=lease_ms / 1000,
        memory_bytes=int(noted.get("memory") or 0) or None,
        up_seconds=ago("up_seconds"),
        other_limits=names("other_limits"),
        is_quiet=is_quiet,
        quiet_seconds=ago("quiet_seconds") if is_quiet else None,
        quiet_by=noted.get("quiet_by", "") if is_quiet else "",
        is_resting=noted.get("resting") == "1",
    )


#: What notes of workers say as it is told.
_TEXTS = ("host", "version", "project_version", "project", "supervisor_name", "crash_loop")
_NUMBERS = {"pid": 0, "jobs_done": 0, "supervisor": 0, "slots": 1}
