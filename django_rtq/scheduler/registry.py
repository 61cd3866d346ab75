"""The entries of the timetable: every schedule, where it was declared, and the task that it starts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from django.core.checks import CheckMessage, Error

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.schedule_store import StoredSchedules, read_switch
from django_rtq.conf import Config, get_config
from django_rtq.exceptions import ConfigurationError, InvalidTask, TaskNotFound
from django_rtq.periodic import Schedule, cron, every, schedule_from_settings
from django_rtq.tasks import registry
from django_rtq.tasks.task import Task

Source = Literal["code", "settings", "admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledTask:
    """A schedule, and the task that it starts."""

    task: Task[Any, Any]
    schedule: Schedule
    source: Source = "code"
    enabled: bool = True
    since: str = ""  # tells one switching on from another: what passed while it was off was not missed

    @property
    def name(self) -> str:
        """The schedule's, by which all processes know it."""
        return self.schedule.name

    @property
    def definition(self) -> str:
        """That of the schedule; another one when it was switched on again."""
        if not self.since:
            return self.schedule.definition
        return hashlib.sha256(f"{self.schedule.definition} {self.since}".encode()).hexdigest()[:12]

    def fire(self, broker: Broker, slot_ms: int) -> str:
        """Start the job of a slot. Returns what the broker says; raises what delay() raises."""
        make = self.task.new_job if self.task.unique is False else self.task.new_unique_job
        job = make(self.schedule.args, dict(self.schedule.kwargs))._replace(id=self.job_id(slot_ms))
        may_overlap = self.schedule.overlap == "allow"
        answer = broker.schedules.fire(self.task.queue, self.name, slot_ms, job, may_overlap=may_overlap)
        if answer == "fired" and signals.job_enqueued.receivers:
            signals.job_enqueued.send_robust(
                ScheduledTask, job_ids=[job.id], queue=self.task.queue, task=self.task.name
            )
        return answer

    def job_id(self, slot_ms: int) -> str:
        """Made from schedule and slot: all schedulers make the same one. It begins with its time, like all ids."""
        return f"{slot_ms:012x}{hashlib.sha256(self.name.encode()).hexdigest()[:20]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSet:
    """All schedules there are."""

    entries: list[ScheduledTask]  # by name, also those that are off
    broken: Mapping[str, str]  # rows that cannot be obeyed: name -> why


def load_schedules(declared: Iterable[ScheduledTask], plan: StoredSchedules) -> ScheduleSet:
    """What the project declares, as far as people have not switched it off, and the rows that they made."""
    entries = {entry.name: _switched(entry, plan.switches.get(entry.name, "")) for entry in declared}
    broken = {}
    for name, row in plan.rows.items():
        try:
            if name in entries:
                raise InvalidTask(f"a schedule of this name is declared in the {entries[name].source}.")
            entries[name] = entry_from_row(name, row)
        except (TaskNotFound, InvalidTask, TypeError, ValueError) as error:
            broken[name] = str(error)
    return ScheduleSet(entries=[entries[name] for name in sorted(entries)], broken=broken)


def _switched(entry: ScheduledTask, switch: str) -> ScheduledTask:
    enabled, since = read_switch(switch)
    return replace(entry, enabled=enabled, since=since)


def entry_from_row(name: str, row: Mapping[str, Any]) -> ScheduledTask:
    """An entry that a person made. Raises TaskNotFound, InvalidTask, TypeError or ValueError when it makes no sense."""
    task = registry.get_open_task(str(row.get("task")))
    changes = {option: row[key] for option, key in (("queue_name", "queue"), ("client", "client")) if row.get(key)}
    if changes:
        task = task.using(**changes)
    options = {option: row[option] for option in ("args", "kwargs", "missed", "cap", "overlap") if option in row}
    if row.get("cron"):
        schedule = cron(row["cron"], tz=row.get("tz", ""), name=name, **options)
    else:
        schedule = every(seconds=row.get("every") or 0, name=name, **options)
    task.check_call(schedule.args, dict(schedule.kwargs))
    return ScheduledTask(
        task=task,
        schedule=schedule,
        source="admin",
        enabled=row.get("enabled") is True,
        since=str(row.get("since", "")),
    )


def declared_entries(config: Config) -> list[ScheduledTask]:
    """Every schedule of this project, of its code and of its settings, by name. Raises ConfigurationError."""
    entries = [ScheduledTask(task=task, schedule=s) for task in registry.all_tasks().values() for s in task.schedule]
    entries += [_entry_from_settings(name, options) for name, options in config.schedules.items()]
    entries.sort(key=lambda entry: entry.name)
    for entry, following in pairwise(entries):
        if entry.name == following.name:
            raise ConfigurationError(f"Two schedules have the name {entry.name!r}. Give one of them another: name=…")
    return entries


def check_schedules(**kwargs: Any) -> list[CheckMessage]:
    """rtq.E002: a schedule makes no sense."""
    try:
        config = get_config()
    except ConfigurationError:
        return []  # rtq.E001 says what is wrong
    try:
        declared_entries(config)
    except ConfigurationError as error:
        return [Error(str(error), id="rtq.E002")]
    return []


def _entry_from_settings(name: str, options: Mapping[str, Any]) -> ScheduledTask:
    try:
        task = registry.get_open_task(str(options.get("task")))
        schedule = schedule_from_settings(name, options)
        task.check_call(schedule.args, dict(schedule.kwargs))
    except (TaskNotFound, InvalidTask, TypeError) as error:
        raise ConfigurationError(f'RTQ["SCHEDULES"][{name!r}]: {error}') from error
    return ScheduledTask(task=task, schedule=schedule, source="settings")
