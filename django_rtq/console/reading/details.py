"""Queues, workers and their jobs as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.merging import ANY, FIRST, JOINED, LEAST, MOST, SUM, by, joined, merge_by
from django_rtq.core.jobs import serializer
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import PARK_SECONDS, JobState, moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """What keeps a queue or a client from starting jobs. None: this does not."""

    paused_seconds: float | None = None  # for how long it has been paused
    paused_by: str = ""  # who paused it; "": not known
    at_limit: int | None = None  # it runs this many jobs, and may run no more
    starts_in_seconds: float | None = None  # until it may start a job, if only its rate stops it

    def __bool__(self) -> bool:
        return self != NO_HOLDS


NO_HOLDS = Holds()


def read_holds(now_ms: float, pause: bytes, at_limit: int | bytes | None = None, starts_at: int | bytes = b"") -> Holds:
    """Read a stored pause ("ms" and who, or ""), how many jobs may run, and when one may start, ms, or ""."""
    ms, _space, by = pause.decode(errors="replace").partition(" ")
    return Holds(
        paused_seconds=max(0.0, (now_ms - float(ms)) / 1000) if ms else None,
        paused_by=by,
        at_limit=at_limit if isinstance(at_limit, int) else None,
        starts_in_seconds=max(0.0, (int(starts_at) - now_ms) / 1000) if starts_at else None,
    )


def holds_text(holds: Holds) -> str:
    """What keeps it from starting jobs, as a part of a sentence. "" if nothing does."""
    if holds.paused_seconds is not None:
        return paused_text(holds)
    if holds.at_limit is not None:
        text = ngettext(
            "at its limit of %(count)s running job", "at its limit of %(count)s running jobs", holds.at_limit
        )
        return text % {"count": format_number(holds.at_limit)}
    if holds.starts_in_seconds is not None:
        return _("next start in %(duration)s") % {"duration": format_duration(holds.starts_in_seconds)}
    return ""


def paused_text(holds: Holds) -> str:
    """For how long it has been paused, and by whom."""
    values = {"user": holds.paused_by, "duration": format_duration(holds.paused_seconds)}
    if holds.paused_by:
        return _("paused by %(user)s, %(duration)s ago") % values
    return _("paused %(duration)s ago") % values


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPause:
    """A client that is paused in a queue."""

    client: str
    seconds: float = field(metadata=MOST)  # for how long
    by: str = field(metadata=FIRST)  # who paused it; "": not known
    held: int = field(metadata=SUM)  # its queued jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPause:
    """A paused task in one queue, or one that was resumed and whose jobs are on their way back to their lanes."""

    task: str
    seconds: float | None = field(metadata=MOST)  # for how long it has been paused; None: it was resumed
    by: str  # who paused it; "": not known
    #: Jobs that claims have met, and that wait; others of the task may be in their lanes still.
    held: int = field(metadata=SUM)

    @property
    def is_over(self) -> bool:
        """Whether it was resumed."""
        return self.seconds is None

    @property
    def text(self) -> str:
        """For how long it has been paused, and by whom, in the language of the user."""
        return paused_text(Holds(paused_seconds=self.seconds, paused_by=self.by))


class ZeroLimit(NamedTuple):
    """A limit of 0 running jobs: jobs wait for ever."""

    field: str  # "queue", "clients" for each client without a limit of its own, or "client:<name>"
    lanes: int  # that wait for it, among the 100 that wait longest
    is_set_here: bool  # at run time; or else the settings say so


def _merged_pauses(lists: Sequence[Sequence[TaskPause]]) -> tuple[TaskPause, ...]:
    """Whoever paused a task comes before places where it was resumed."""
    return tuple(merge_by("task", sorted(joined(lists), key=lambda pause: pause.is_over)))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDetails:
    """How many jobs a queue holds."""

    name: str
    paused: bool = field(metadata=ANY)
    queued: int = field(metadata=SUM)
    scheduled: int = field(metadata=SUM)
    retrying: int = field(metadata=SUM)
    running: int = field(metadata=SUM)
    dead: int = field(metadata=SUM)
    #: How long the oldest queued job has been waiting that might start, so none of a client that is paused or at its
    #: limits; None: no such job waits.
    oldest_seconds: float | None = field(metadata=MOST)
    clients: int = field(metadata=SUM)  # lanes with jobs: clients, counted once for each priority
    finished: int = field(default=0, metadata=SUM)  # finished jobs whose outcome is kept
    #: Since the last contact of any of its workers or schedulers; None: never.
    contact_seconds: float | None = field(default=None, metadata=LEAST)
    #: Since a scheduler last looked for its due jobs.
    scheduler_seconds: float | None = field(default=None, metadata=MOST)
    #: How far the server's clock, which was put back, still is behind.
    clock_behind_seconds: float = field(default=0.0, metadata=MOST)
    paused_seconds: float | None = field(default=None, metadata=MOST)  # since it was paused; None: it is not
    paused_by: str = field(default="", metadata=FIRST)  # who paused it; "": not known
    #: Tasks whose jobs wait here, by name; their jobs count as scheduled.
    paused_tasks: tuple[TaskPause, ...] = field(default=(), metadata=by(_merged_pauses))
    #: Jobs of `queued` that are in no place in Redis; workers queue them again.
    lost: int = field(default=0, metadata=SUM)
    #: Since a worker has noticed them; None: there are none.
    lost_seconds: float | None = field(default=None, metadata=MOST)
    #: 50 at most, those that are paused for longest.
    paused_clients: tuple[ClientPause, ...] = field(
        default=(), metadata=by(lambda lists: tuple(merge_by("client", joined(lists))))
    )
    is_at_limit: bool = field(default=False, metadata=ANY)  # it runs as many jobs as it may
    is_at_rate: bool = field(default=False, metadata=ANY)  # its rate lets no job start at this moment
    zero_limits: Sequence[ZeroLimit] = field(default=(), metadata=JOINED)  # for which jobs wait

    @property
    def waiting(self) -> int:
        """The jobs that wait: for a worker, for their time, or because their task is paused. A purge deletes them."""
        return self.queued + self.scheduled + self.retrying

    @property
    def holds(self) -> str:
        """What keeps it from starting jobs, in the language of the user; "" if nothing does."""
        if not self.paused and self.is_at_rate and not self.is_at_limit:
            return _("its rate lets no job start at this moment")
        paused_seconds = self.paused_seconds or 0.0 if self.paused else None
        at_limit = self.running if self.is_at_limit else None
        return holds_text(Holds(paused_seconds=paused_seconds, paused_by=self.paused_by, at_limit=at_limit))

    @property
    def needs_scheduler(self) -> bool:
        """Whether it has jobs that wait for their time."""
        return bool(self.scheduled - self.held or self.retrying)

    @property
    def held(self) -> int:
        """How many of the scheduled jobs wait because their tasks are paused."""
        return sum(pause.held for pause in self.paused_tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTask:
    """A task that workers which claimed jobs of it do not know."""

    task: str
    since: datetime | None
    jobs: int  # claimed in the last half minute, which is how often such a job is claimed
    workers: Sequence[str]  # names of those that claimed some, the latest first, three at most

    @classmethod
    def read_all(cls, noted: Mapping[bytes, bytes], now_ms: int) -> list[UnknownTask]:
        """Read what the script note_unknown_task has noted, without tasks of which no worker met a job lately."""
        found, park_ms = [], round(PARK_SECONDS * 1000)
        for task, line in sorted(noted.items()):
            since, last, seen, jobs, before, *workers = line.decode(errors="replace").split(" ")
            if now_ms - int(last) <= 2 * park_ms:
                most = int(jobs) if now_ms // park_ms > int(seen) else max(int(jobs), int(before))
                name = task.decode(errors="replace")
                found.append(cls(task=name, since=moment(int(since)), jobs=most, workers=workers))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob(JobDetails):
    """A job that a worker holds, without its arguments and failures."""

    state: JobState = JobState.RUNNING
    seconds: float  # since it was claimed
    lease_left_seconds: float = 0.0  # of its worker; below 0: it is about to be reclaimed
    time_limit: float | None = None  # seconds, if it is set for this call
    usual_seconds: float | None = None  # 95th percentile of its task; None: unknown, or not read


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDetails:
    """One worker process."""

    name: str
    host: str
    pid: int
    queues: list[str]
    running: list[RunningJob]
    last_seen_seconds: float | None  # since its supervisor renewed its lease; None: not yet
    last_claim_seconds: float | None  # since Redis last answered its request for jobs
    jobs_done: int
    held: int = 0  # claimed jobs, also those that `running` has no room for
    supervisor_name: str = ""  # the name of its rtq_worker; "": not known (yet)
    is_quiet: bool = False  # it was asked to claim no jobs
    quiet_seconds: float | None = None  # for how long; None: it is not quiet, or not known
    quiet_by: str = ""  # who asked it; "": not known
    is_resting: bool = False  # and has said that it claims none, with none of its claims under way
    lease_left_seconds: float = 0.0  # below 0: it is about to be declared dead
    supervisor: int = 0  # process id of the supervisor
    slots: int = 1  # jobs that it can run at once
    version: str = ""  # of django_rtq
    project_version: str = ""  # RTQ["VERSION"]; "": it has none
    project: str = ""  # the package of its ROOT_URLCONF; "": it has none
    other_limits: list[str] = field(default_factory=list)  # queues for which limits of other settings hold
    memory_bytes: int | None = None
    up_seconds: float | None = None
    #: It is the supervisor: its processes crash again and again before they run a job, in this way. It waits before it
    #: starts others. "": it is a process.
    crash_loop: str = ""
    shard: int | None = None  # where it is; None without RTQ["SHARDS"]

    @property
    def is_lost(self) -> bool:
        """Whether its lease has expired: its jobs are about to be reclaimed."""
        return self.lease_left_seconds < 0

    @property
    def busy(self) -> int:
        """Slots in use. A worker may hold more jobs than it runs, because short jobs are claimed in batches."""
        return min(len(self.running), self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStep:
    """A step that a job has finished, or an event that it has got."""

    name: str
    ended_at: datetime | None
    seconds: float | None  # how long it took; None: it is an event
    result: Any  # or the value of the event

    @classmethod
    def read_all(cls, flat: Sequence[bytes]) -> list[FinishedStep]:
        """From the reply to HGETALL of the key `steps` of a job."""
        found: list[tuple[int, str, float | None, bytes]] = []
        for name, text in zip(flat[::2], flat[1::2], strict=True):
            kind, _, rest = name.decode(errors="replace").partition(" ")
            ms, _, value = text.partition(b" ")
            if kind == "step":
                micros, _, value = value.partition(b" ")
                found.append((int(ms), rest, int(micros) / 1e6, value))
            elif kind == "event" and text:
                found.append((int(ms), rest.partition(" ")[2], None, value))
        found.sort(key=lambda entry: entry[0])
        return [
            cls(name=name, ended_at=moment(ms), seconds=seconds, result=serializer.loads(value))
            for ms, name, seconds, value in found
        ]
