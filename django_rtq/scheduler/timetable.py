"""The timetable: starts periodic jobs of some queues, each slot of a schedule once, however many do the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django_rtq import registry, signals
from django_rtq.broker.broker import Broker, ScheduleState
from django_rtq.conf import Config
from django_rtq.exceptions import ConfigurationError, InvalidTask, TaskNotFound
from django_rtq.periodic import Schedule, schedule_from_settings
from django_rtq.tasks import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A schedule, and the task that it starts."""

    task: Task[Any, Any]
    schedule: Schedule

    def fire(self, broker: Broker, slot_ms: int, *, begin: bool = False) -> str:
        """Start the job of a slot, or begin to count slots from there on. Returns what the broker says."""
        job = self.task.new_job(self.schedule.args, dict(self.schedule.kwargs))._replace(id=self._job_id(slot_ms))
        identity = (self.schedule.name, self.schedule.print, "begin" if begin else self.schedule.overlap)
        answer = broker.fire(self.task.queue, slot_ms, identity, job)
        if answer == "fired" and signals.job_enqueued.receivers:
            signals.job_enqueued.send_robust(Timetable, job_ids=[job.id], queue=self.task.queue, task=self.task.name)
        return answer

    def _job_id(self, slot_ms: int) -> str:
        """Made from schedule and slot: all schedulers make the same one. It begins with its time, like all ids."""
        return f"{slot_ms:012x}{hashlib.sha256(self.schedule.name.encode()).hexdigest()[:20]}"


class Timetable:
    """All entries of some queues."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self.entries = [entry for entry in all_entries(broker.config) if entry.task.queue in queues]
        self._queues = sorted({entry.task.queue for entry in self.entries})

    def fire_due(self) -> float | None:
        """Start what is due now. Returns the seconds until the next slot; None: there is no entry."""
        if not self.entries:
            return None
        now_ms, states = self._broker.schedules(self._queues)
        for entry in self.entries:
            self._fire(entry, states[entry.task.queue].get(entry.schedule.name), now_ms)
        return max(0.0, (min(entry.schedule.next_ms(now_ms) for entry in self.entries) - now_ms) / 1000)

    def _fire(self, entry: Entry, state: ScheduleState | None, now_ms: int) -> None:
        if state is None or state.definition != entry.schedule.print:
            entry.fire(self._broker, now_ms, begin=True)  # what would have been before was not missed
            return
        for slot_ms in entry.schedule.due(state.last_slot_ms, now_ms):
            entry.fire(self._broker, slot_ms)


def all_entries(config: Config) -> list[Entry]:
    """Every schedule of this project, of its code and of its settings. Raises ConfigurationError."""
    entries = [Entry(task=task, schedule=s) for task in registry.all_tasks().values() for s in task.schedule]
    for name, options in config.schedules.items():
        try:
            task = registry.get_task(str(options.get("task")))
            entries.append(Entry(task=task, schedule=schedule_from_settings(name, options)))
        except (TaskNotFound, InvalidTask) as error:
            raise ConfigurationError(f'RTQ["SCHEDULES"][{name!r}]: {error}') from error
    names = [entry.schedule.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"Two schedules have the name {name!r}. Give one of them another: name=…")
    return entries
