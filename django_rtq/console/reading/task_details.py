"""One task over all queues: its runs by the hour, its jobs in each state, and its dead letters by error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
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
from django_rtq.console.reading.jobs.walk import list_sizes
from django_rtq.console.reading.metrics.reader import (
    HOUR_MS,
    Deploy,
    TaskHours,
    TaskMetrics,
    VersionRuns,
    deploys_of,
    merged_versions,
)
from django_rtq.console.reading.queues import QueueReader, asking, together
from django_rtq.console.reading.selection import Selection
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Packet
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment
from django_rtq.core.jobs.record import read_head
from django_rtq.core.tasks.registry import names_of

MAX_SEARCHED = 2000  # jobs of each list that are read, of all queues together
LEAST_SEARCHED = 25  # the same, of each queue
MAX_RUNNING = 500  # running jobs of a queue that are read
MAX_KEPT = 8  # histories of tasks
SHOWN_HOURS = 48  # of one task, before the present one
LISTED_HOURS = 24  # the same, of all tasks
HOURS_AT_ONCE = 12  # that a script reads: two milliseconds
_HEAD_BYTES = 400  # read of a running job's record: enough for its header and the name of its task
_LISTS = ("queued", "scheduled", "retrying")  # that are searched

ByHours = Mapping[int, Mapping[bytes, int]]  # hour since 1970 -> kind -> number


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """What is known of a task, under its name and its aliases."""

    begins_at: datetime  # the first of `hours`
    #: Every hour, the present one last.
    hours: list[TaskMetrics] = field(metadata=by(lambda lists: list(map(merge, zip(*lists, strict=False)))))
    total: TaskMetrics = field(metadata=ONE)  # of `hours` together
    queues: list[TaskInQueue] = field(metadata=rows_by("queue.name"))  # every queue
    deploys: list[Deploy]  # the newest first; none without RTQ["VERSION"]
    versions: list[VersionRuns] = field(metadata=by(merged_versions))  # the same
    groups: list[DeadGroup] = field(metadata=by(merged_groups))

    @property
    def is_known(self) -> bool:
        """Whether Redis knows anything of it."""
        return any(queue.jobs for queue in self.queues) or self.total != TaskMetrics()


class TaskReader:
    """Reads tasks. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues, self._dead_letters = QueueReader(broker), DeadLetters(broker)
        self._broker, self._redis, self._keys = broker, broker.redis, broker.keys
        #: Name of a task -> the queues and names that were asked for, their marks, and the hours before.
        self._kept: dict[str, tuple[Sequence[Any], Sequence[bytes], ByHours]] = {}
        self._hours = TaskHours(broker, LISTED_HOURS)

    def get(self, name: str) -> TaskDetails:
        """A task, with its runs in the current hour and the 48 hours before it. A few round trips.

        Jobs and runs under its aliases are included, as far as this process knows the aliases.
        """
        queues, names = self._queues.names(), names_of(name)
        places, script = [(queue, task) for queue in queues for task in names], SCRIPTS["task_history"]
        calls = [script.call(self._keys.of(queue), (SHOWN_HOURS, task, 0, 1)) for queue, task in places]
        read = together(asking({"": [("TIME",), *calls]}), self._queues.details_of(queues), deploys_of(self._broker))
        replies, details, deploys = self._redis.run(read)
        (seconds, _), *histories = replies[""]
        past = self._past(name, places, [history[0] for history in histories])
        now_ms = max((history[1] for history in histories), default=int(seconds) * 1000)
        by_hour, present = _add_up(past, histories), now_ms // HOUR_MS
        shown = range(present - SHOWN_HOURS, present + 1)
        in_queues, groups = self._jobs(names, details)
        return TaskDetails(
            begins_at=clock_moment(shown[0] * HOUR_MS),
            hours=[TaskMetrics.of(by_hour.get(hour, {})) for hour in shown],
            total=TaskMetrics.of(sum_of_counts(by_hour.get(hour, {}) for hour in shown)),
            queues=in_queues,
            deploys=deploys,
            versions=merged_versions(VersionRuns.read_all(history[2]) for history in histories),
            groups=merged_groups(groups),
        )

    def _jobs(
        self, names: Sequence[str], queues: Sequence[QueueDetails]
    ) -> tuple[list[TaskInQueue], list[list[DeadGroup]]]:
        """Its jobs in each queue, and its dead letters. Only lists are searched that have any jobs."""
        most = max(LEAST_SEARCHED, min(GROUPED_AT_ONCE, MAX_SEARCHED // max(1, len(queues))))
        wanted, packet = Selection(task=f"={names[0]}").script_arguments(), Packet()
        for queue in queues:
            keys = self._keys.of(queue.name)
            for state in filter(partial(getattr, queue), _LISTS):
                arguments = (*wanted, state, "", "", "", most, most, "count")
                packet.add(f"{state} {queue.name}", SCRIPTS["search_jobs"].call(keys, arguments))
            if queue.running:
                packet.add(f"running {queue.name}", SCRIPTS["list_running"].call(keys, (MAX_RUNNING, _HEAD_BYTES)))
            for task in names if queue.dead else ():
                packet.add(f"dead {queue.name}", self._dead_letters.task_groups_command(queue.name, task, most))
        replies = packet.replies(self._redis.execute(packet.commands, resend=True) if packet.commands else [])
        groups = [
            [group for reply in replies[f"dead {queue.name}"] for group in read_groups(queue.name, reply)]
            for queue in queues
        ]
        return [_read_jobs(names, most, *of, replies) for of in zip(queues, groups, strict=True)], groups

    def _past(self, name: str, places: Sequence[tuple[str, str]], marks: Sequence[bytes]) -> ByHours:
        """The counters of the hours that are over, which are slow to read, and kept as long as the marks say."""
        if name in self._kept and self._kept[name][:2] == (places, marks):
            return self._kept[name][2]
        calls = [
            SCRIPTS["task_history"].call(self._keys.of(queue), (0, task, first, min(HOURS_AT_ONCE, present - first)))
            for (queue, task), (present, keys) in zip(places, (map(int, mark.split()) for mark in marks), strict=True)
            for first in range(present - SHOWN_HOURS, present if keys else 0, HOURS_AT_ONCE)
        ]
        past = _add_up({}, self._redis.execute(calls, resend=True) if calls else [])
        others = [(other, kept) for other, kept in self._kept.items() if other != name]
        self._kept = dict([*others, (name, (places, marks, past))][-MAX_KEPT:])
        return past

    def all(self) -> dict[str, TaskMetrics]:
        """The metrics of all tasks by name. Three round trips, or more."""
        return self._hours.read(self._queues.names())


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
    names: Sequence[str],
    most: int,
    queue: QueueDetails,
    groups: Sequence[DeadGroup],
    replies: Mapping[str, Sequence[Any]],
) -> TaskInQueue:
    sizes = list_sizes({queue.name: queue}, [(queue.name, state) for state in _LISTS])
    found, is_cut = Counter[str](), {"dead": queue.dead > most}
    for state in _LISTS:  # not names escaped in JSON
        for _status, looked, _at, counted, *_ in replies[f"{state} {queue.name}"]:
            found[state] = counted
            is_cut[state] = sizes[queue.name, state] > looked and getattr(queue, state) > counted
    workers = [worker for _now, *workers in replies[f"running {queue.name}"] for worker in workers]
    held = [head for _worker, _lease, _count, *jobs in workers for _id, _claim, head, *_rest in jobs]
    is_cut["running"] = queue.running > len(held)
    # Held jobs are counted, however few of them the search has met.
    held_jobs = sum(pause.held for pause in queue.paused_tasks if pause.task in names)
    return TaskInQueue(
        queue=queue,
        queued=found["queued"],
        scheduled=max(found["scheduled"], held_jobs),
        retrying=found["retrying"],
        running=sum(read_head(head)[1] in names for head in held),
        dead=sum(group.count for group in groups),
        cut=frozenset(state for state, is_longer in is_cut.items() if is_longer),
    )
