"""One task over all queues: its runs by the hour, its jobs in each state, and its dead letters by error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_rtq.console.merging import ONE, SUM, UNION, by, merge, rows_by, sum_of_counts
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.jobs.dead_letters import (
    GROUPED_AT_ONCE,
    DeadGroup,
    DeadLetters,
    merged_groups,
    read_groups,
)
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.jobs.walk import list_sizes
from django_rtq.console.reading.metrics.reader import (
    HOUR_MS,
    MAX_HOURS,
    Deploy,
    TaskMetrics,
    VersionRuns,
    deploy_commands,
    merged_versions,
    read_deploys,
)
from django_rtq.console.reading.metrics.task_hours import TaskHours
from django_rtq.console.reading.queues import QueueReader, read_queue_details
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Argument, Command, Packet
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment
from django_rtq.core.jobs.record import read_head
from django_rtq.core.tasks.registry import names_of

MAX_SEARCHED = 2000  # jobs of each list that are read, of all queues together
LEAST_SEARCHED = 25  # the same, of each queue
MAX_RUNNING = 500  # running jobs of a queue that are read
MAX_KEPT = 8  # histories of tasks
HOURS_AT_ONCE = 12  # that a script reads: two milliseconds
_HEAD_BYTES = 400  # read of a running job's record: enough for its header and the name of its task
_LISTS = ("queued", "scheduled", "retrying")  # that are searched
_PER_QUEUE = 2 + len(_LISTS)  # commands

ByHours = Mapping[int, Mapping[bytes, int]]  # hour since 1970 -> kind -> number


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHour:
    """The runs of a task in one hour."""

    begins_at: datetime
    metrics: TaskMetrics = field(metadata=ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInQueue:
    """The jobs of a task in one queue, as far as they were searched."""

    queue: QueueDetails = field(metadata=ONE)
    queued: int = field(default=0, metadata=SUM)
    scheduled: int = field(default=0, metadata=SUM)
    retrying: int = field(default=0, metadata=SUM)
    running: int = field(default=0, metadata=SUM)
    dead: int = field(default=0, metadata=SUM)
    #: States in which there may be more: the search did not reach the end.
    cut: frozenset[str] = field(default=frozenset(), metadata=UNION)

    @property
    def waiting(self) -> int:
        """Its queued, scheduled and retrying jobs."""
        return self.queued + self.scheduled + self.retrying

    @property
    def jobs(self) -> int:
        """All its jobs that were found."""
        return self.waiting + self.running + self.dead

    @property
    def is_cut(self) -> bool:
        """Whether it may have more waiting jobs."""
        return bool(self.cut & {"queued", "scheduled", "retrying"})

    def __bool__(self) -> bool:
        """Whether any job of the task was found."""
        return bool(self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """What is known of a task, under its name and its aliases."""

    name: str
    #: Every hour, the present one last.
    hours: list[TaskHour] = field(metadata=by(lambda lists: list(map(merge, zip(*lists, strict=False)))))
    total: TaskMetrics = field(metadata=ONE)  # of `hours` together
    queues: list[TaskInQueue] = field(metadata=rows_by("queue.name"))  # every queue
    deploys: list[Deploy]  # the newest first; none without RTQ["VERSION"]
    versions: list[VersionRuns] = field(metadata=by(merged_versions))  # the same
    groups: list[DeadGroup] = field(metadata=by(merged_groups))

    @property
    def is_known(self) -> bool:
        """Whether Redis knows anything of it."""
        return any(self.queues) or self.total != TaskMetrics()


class TaskReader:
    """Reads tasks. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues, self._dead_letters = QueueReader(broker), DeadLetters(broker)
        self._broker, self._redis, self._keys = broker, broker.redis, broker.keys
        #: Name and hours of a task -> the queues and names that were asked for, their marks, and the hours before.
        self._kept: dict[tuple[str, int], tuple[Sequence[Any], Sequence[bytes], ByHours]] = {}
        self._hours = TaskHours(broker)

    def get(self, name: str, hours: int = 24) -> TaskDetails:
        """A task, with its runs in the current hour and so many hours before it, 48 at most. Two round trips, or three.

        Jobs and runs under its aliases are included, as far as this process knows the aliases.
        """
        hours, queues, names = max(0, min(hours, MAX_HOURS)), self._queues.names(), names_of(name)
        most = max(LEAST_SEARCHED, min(GROUPED_AT_ONCE, MAX_SEARCHED // max(1, len(queues))))
        places, packet = [(queue, task) for queue in queues for task in names], Packet()
        wanted = JobFilter(task=f"={name}").script_arguments()
        packet.add("time", ("TIME",))  # also if there is no queue
        packet.add("deploys", *deploy_commands(self._broker))
        for queue in queues:
            packet.add("queues", *self._queue_commands(queue, wanted, most))
        for place in places:
            packet.add("places", *self._commands(*place, hours, most))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True))
        ((seconds, _),), deploys, of_queues = replies["time"], replies["deploys"], replies["queues"]
        of_places = list(zip(replies["places"][::2], replies["places"][1::2], strict=True))
        histories = [history for history, _ in of_places]
        past = self._past((name, hours), places, [history[0] for history in histories])
        now_ms = max((history[1] for history in histories), default=int(seconds) * 1000)
        by_hour, present = _add_up(past, histories), now_ms // HOUR_MS
        shown = range(present - hours, present + 1)
        in_queues: list[TaskInQueue] = []
        groups: list[list[DeadGroup]] = []
        for number, queue in enumerate(queues):
            found = of_queues[number * _PER_QUEUE : (number + 1) * _PER_QUEUE]
            dead = [dead for _, dead in of_places[number * len(names) : (number + 1) * len(names)]]
            groups.append([group for reply in dead for group in read_groups(queue, reply)])
            in_queues.append(_read_jobs(names, most, queue, *found, groups=groups[-1]))
        return TaskDetails(
            name=name,
            hours=[
                TaskHour(begins_at=clock_moment(hour * HOUR_MS), metrics=TaskMetrics.of(by_hour.get(hour, {})))
                for hour in shown
            ],
            total=TaskMetrics.of(sum_of_counts(by_hour.get(hour, {}) for hour in shown)),
            queues=in_queues,
            deploys=read_deploys(deploys),
            versions=merged_versions(VersionRuns.read_all(history[2]) for history in histories),
            groups=merged_groups(groups),
        )

    def _past(self, key: tuple[str, int], places: Sequence[tuple[str, str]], marks: Sequence[bytes]) -> ByHours:
        """The counters of the hours that are over, which are slow to read, and kept as long as the marks say."""
        if key in self._kept and self._kept[key][:2] == (places, marks):
            return self._kept[key][2]
        calls = [
            SCRIPTS["task_history"].call(self._keys.of(queue), (0, task, first, min(HOURS_AT_ONCE, present - first)))
            for (queue, task), (present, keys) in zip(places, (map(int, mark.split()) for mark in marks), strict=True)
            for first in range(present - key[1], present if keys else 0, HOURS_AT_ONCE)
        ]
        past = _add_up({}, self._redis.execute(calls, resend=True) if calls else [])
        others = [(other, kept) for other, kept in self._kept.items() if other != key]
        self._kept = dict([*others, (key, (places, marks, past))][-MAX_KEPT:])
        return past

    def all(self, hours: int = 24) -> tuple[dict[str, TaskMetrics], list[QueueDetails]]:
        """The metrics of all tasks by name, and the queues, which know what is paused: three round trips, or more."""
        queues = self._queues.names()
        overviews = [SCRIPTS["queue_overview"].call(self._keys.of(queue), ()) for queue in queues]
        metrics, replies = self._hours.read(queues, hours, also=overviews)
        details = [read_queue_details(queue, reply) for queue, reply in zip(queues, replies, strict=True)]
        return dict(sorted(metrics.items())), details

    def _queue_commands(self, queue: str, wanted: Sequence[Argument], most: int) -> list[Command]:
        keys = self._keys.of(queue)
        return [
            SCRIPTS["queue_overview"].call(keys, ()),
            SCRIPTS["list_running"].call(keys, (MAX_RUNNING, _HEAD_BYTES)),
            *(SCRIPTS["search_jobs"].call(keys, (*wanted, state, "", "", "", most, most, "count")) for state in _LISTS),
        ]

    def _commands(self, queue: str, name: str, hours: int, most: int) -> list[Command]:
        history = SCRIPTS["task_history"].call(self._keys.of(queue), (hours, name, 0, 1))
        return [history, self._dead_letters.task_groups_command(queue, name, most)]


def _add_up(past: ByHours, histories: Iterable[Sequence[Any]]) -> ByHours:
    """The counters of all queues by the hour, added to others."""
    by_hour = {hour: dict(numbers) for hour, numbers in past.items()}
    for _mark, _now_ms, _versions, *lines in histories:
        for line in lines:
            hour, *words = line.split(b" ")
            counts = by_hour.setdefault(int(hour), {})
            for kind, number in zip(words[::2], map(int, words[1::2]), strict=True):
                counts[kind] = counts.get(kind, 0) + number
    return by_hour


def _read_jobs(
    names: Sequence[str], most: int, queue: str, overview: Any, running: Any, *lists: Any, groups: Sequence[DeadGroup]
) -> TaskInQueue:
    details = read_queue_details(queue, overview)
    sizes = list_sizes({queue: details}, [(queue, state) for state in _LISTS])
    found, is_cut = dict[str, int](), dict[str, bool]()
    for state, (_status, looked, _at, counted, *_) in zip(_LISTS, lists, strict=True):  # not names escaped in JSON
        found[state], is_cut[state] = counted, sizes[queue, state] > looked and getattr(details, state) > counted
    held = [head for _worker, _lease, _count, *jobs in running[1:] for _id, _claim, head, *_rest in jobs]
    is_cut |= {"running": details.running > len(held), "dead": details.dead > most}
    # Held jobs are counted, however few of them the search has met.
    held_jobs = sum(pause.held for pause in details.paused_tasks if pause.task in names)
    return TaskInQueue(
        queue=details,
        queued=found["queued"],
        scheduled=max(found["scheduled"], held_jobs),
        retrying=found["retrying"],
        running=sum(read_head(head)[1] in names for head in held),
        dead=sum(group.count for group in groups),
        cut=frozenset(state for state, is_longer in is_cut.items() if is_longer),
    )
