"""All schedules of a project, from its code, its settings and the database, with the tasks that they start."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from django_rtq.core import signals
from django_rtq.core.broker.messages import is_refusal, queue_full
from django_rtq.core.broker.task_backends import place_of, shard_numbers, shard_of, shard_place
from django_rtq.core.conf.config import Config, task_backends
from django_rtq.core.extension import parts, required
from django_rtq.core.handle import JobHandle
from django_rtq.core.jobs.job import with_shard
from django_rtq.core.schedules import Schedule, cron, every, schedule_from_settings
from django_rtq.core.tasks import registry
from django_rtq.core.tasks.enqueuing import Arguments
from django_rtq.core.tasks.task import Task, check_call, new_job, send_through_middleware
from django_rtq.exceptions import ConfigurationError, InvalidTask, TaskNotFound

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker
    from django_rtq.core.broker.schedule_store import StoredSchedules

logger = logging.getLogger("django_rtq")

Source = Literal["code", "settings", "admin"]


@dataclass(frozen=True, kw_only=True)
class ScheduledTask:
    """A schedule and the task that it starts."""

    task: Task[Any, Any]
    schedule: Schedule
    source: Source = "code"
    enabled: bool = True
    since: str = ""  # new each time it is enabled: slots while it was disabled were not missed

    @property
    def name(self) -> str:
        """The name of the schedule, the same in all processes."""
        return self.schedule.name

    @property
    def definition(self) -> str:
        """A digest that changes with the definition of the schedule, and each time it is enabled."""
        if not self.since:
            return self.schedule.definition
        return hashlib.sha256(f"{self.schedule.definition} {self.since}".encode()).hexdigest()[:12]

    @cached_property
    def place(self) -> str:
        """Where its jobs go: the Redis of its backend, or the shard of its client, else of its name."""
        place = place_of(self.task.backend)
        if place or not shard_numbers():
            return place
        client = new_job(self.task, self.schedule.args, dict(self.schedule.kwargs)).client
        return shard_place(required("placement").shard_of_schedule(self.task.queue, client, self.name))

    def fire(self, broker: Broker, slot_ms: int) -> str:
        """Enqueue the job of a slot. Returns the answer of ScheduleStore.fire; raises what delay() raises."""
        # The schedule keeps its state in the queue of its task.
        queue, may_overlap = self.task.queue, self.schedule.overlap == "allow"
        answers: list[str] = []

        def send(task: Task[Any, Any], calls: Iterable[Arguments]) -> list[JobHandle[Any]]:
            for args, kwargs in calls:
                job = new_job(task, args, kwargs)._replace(id=self.job_id(slot_ms))
                answers.append(broker.schedules.fire(queue, self.name, slot_ms, job, may_overlap=may_overlap))
                if is_refusal(answers[-1]):
                    full = queue_full(queue, [job], answers[-1:])
                    logger.warning("schedule %s: the job of this slot is skipped: %s", self.name, full)
                if answers[-1] == "fired":
                    signals.send_enqueued(ScheduledTask, queue, task.name, [job.id])
            return [JobHandle(self.job_id(slot_ms), task.queue, backend=task.backend) for _ in answers]

        call = (self.schedule.args, dict(self.schedule.kwargs))
        send_through_middleware(self.task, [call], send, schedule=self.schedule)
        return answers[0]

    def job_id(self, slot_ms: int) -> str:
        """An id made of schedule and slot, so that all schedulers make the same. Begins with the time, like all ids."""
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        version = digest[0].replace("8", "7")  # jobs of workflows and of shards have an 8 there
        return with_shard(f"{slot_ms:012x}{version}{digest[1:20]}", shard_of(self.place) or 0)


def load_schedules(
    declared: Iterable[ScheduledTask], stored: StoredSchedules
) -> tuple[list[ScheduledTask], Mapping[str, str]]:
    """The declared schedules, disabled where they were switched off, and those of the database, by name. And why rows
    of the database are invalid, by the name of each."""
    entries, broken = dict[str, ScheduledTask](), dict[str, str]()
    for entry in declared:
        word, _, since = stored.switches.get(entry.name, "").partition(" ")  # "": it was never switched
        entries[entry.name] = replace(entry, enabled=word != "off", since=since)
    for name, row in stored.rows.items():
        try:
            if name in entries:
                raise InvalidTask(f"a schedule of this name is declared in the {entries[name].source}.")
            entries[name] = schedule_from_row(name, row)
        except (TaskNotFound, InvalidTask, TypeError, ValueError) as error:
            broken[name] = str(error)
    return [entries[name] for name in sorted(entries)], broken


def schedule_from_row(name: str, row: Mapping[str, Any]) -> ScheduledTask:
    """A schedule of the database. Raises TaskNotFound, InvalidTask, TypeError or ValueError if it is invalid."""
    task = registry.get_public_task(str(row.get("task")))
    changes = {option: row[key] for option, key in (("queue_name", "queue"), ("client", "client")) if row.get(key)}
    if changes:
        task = task.using(**changes)
    options = {option: row[option] for option in ("args", "kwargs", "missed", "cap", "overlap") if option in row}
    if row.get("cron"):
        schedule = cron(row["cron"], tz=row.get("tz", ""), name=name, **options)
    else:
        schedule = every(seconds=row.get("every") or 0, name=name, **options)
    check_call(task, schedule.args, dict(schedule.kwargs))
    return ScheduledTask(
        task=task,
        schedule=schedule,
        source="admin",
        enabled=row.get("enabled") is True,
        since=str(row.get("since", "")),
    )


def schedules_in(place: str, config: Config) -> list[ScheduledTask]:
    """The declared schedules whose jobs go to a Redis. Raises ConfigurationError."""
    known = {"", *task_backends()}  # TASKS may not have the backend of a task any more
    return [entry for entry in declared_schedules(config) if entry.task.backend in known and entry.place == place]


def declared_schedules(config: Config) -> list[ScheduledTask]:
    """The schedules of the code and of RTQ["SCHEDULES"], by name. Raises ConfigurationError."""
    entries = [ScheduledTask(task=task, schedule=s) for task in registry.all_tasks().values() for s in task.schedule]
    entries += [entry for declare in parts("schedules") for entry in declare()]
    entries += [_schedule_from_settings(name, options) for name, options in config.schedules.items()]
    entries.sort(key=lambda entry: entry.name)
    for entry, following in pairwise(entries):
        if entry.name == following.name:
            raise ConfigurationError(f"Two schedules have the name {entry.name!r}. Rename one of them: name=…")
    return entries


def _schedule_from_settings(name: str, options: Mapping[str, Any]) -> ScheduledTask:
    try:
        if "task" not in options:
            raise InvalidTask('"task" is required: the name of a task.')
        task = registry.get_public_task(str(options["task"]))
        schedule = schedule_from_settings(name, options)
        check_call(task, schedule.args, dict(schedule.kwargs))
    except (TaskNotFound, InvalidTask, TypeError) as error:
        raise ConfigurationError(f'RTQ["SCHEDULES"][{name!r}]: {error}') from error
    return ScheduledTask(task=task, schedule=schedule, source="settings")
