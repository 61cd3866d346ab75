"""The timetable: starts periodic jobs of some queues, each slot of a schedule once, however many do the same.

1. when the next slot has come, ask Redis for its time and for the last slot of each schedule
2. begin to count where a schedule, or its definition, is new: what would have been before was not missed
3. find the slots that are due since then
4. let the script `fire` start a job for each, unless another scheduler was faster
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.core.checks import CheckMessage, Error

from django_rtq import registry, signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.schedule_state import ScheduleState
from django_rtq.conf import Config, get_config
from django_rtq.exceptions import BrokerError, ConfigurationError, InvalidTask, TaskNotFound
from django_rtq.periodic import Schedule, schedule_from_settings
from django_rtq.tasks import Task

logger = logging.getLogger("django_rtq")

LONGEST_SECONDS = 60.0  # until it asks for the time again: the server's clock may have been put forward
CLOCK_WAS_WRONG_MS = 3_600_000  # see now_ms in _prelude.lua
FORGOTTEN_MS = 90 * 86_400_000  # a schedule that is declared no more is forgotten when it has not fired for so long


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A schedule, and the task that it starts."""

    task: Task[Any, Any]
    schedule: Schedule

    @property
    def name(self) -> str:
        """The schedule's, by which all processes know it."""
        return self.schedule.name

    def fire(self, broker: Broker, slot_ms: int) -> str:
        """Start the job of a slot. Returns what the broker says; raises what delay() raises."""
        make = self.task.new_job if self.task.unique is False else self.task.new_unique_job
        job = make(self.schedule.args, dict(self.schedule.kwargs))._replace(id=self.job_id(slot_ms))
        may_overlap = self.schedule.overlap == "allow"
        answer = broker.fire(self.task.queue, self.name, slot_ms, job, may_overlap=may_overlap)
        if answer == "fired" and signals.job_enqueued.receivers:
            signals.job_enqueued.send_robust(Timetable, job_ids=[job.id], queue=self.task.queue, task=self.task.name)
        return answer

    def job_id(self, slot_ms: int) -> str:
        """Made from schedule and slot: all schedulers make the same one. It begins with its time, like all ids."""
        return f"{slot_ms:012x}{hashlib.sha256(self.name.encode()).hexdigest()[:20]}"


class Timetable:
    """All entries of some queues. For one thread."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self.entries = [entry for entry in all_entries(broker.config) if entry.task.queue in queues]
        self._queues = sorted({entry.task.queue for entry in self.entries})
        self._known_since: dict[str, int] = {}  # name -> since when this process counts its slots, ms
        self._asks_at = 0.0  # when it asks Redis again, on the monotonic clock

    def fire_due(self) -> float | None:
        """Start what is due now. Returns the seconds until it has to be called again; None: there is no entry."""
        if not self.entries:
            return None
        if (left := self._asks_at - time.monotonic()) > 0:
            return left
        now_ms, states = self._broker.schedules(self._queues)
        asked_at = time.monotonic()
        for entry in self.entries:
            self._fire(entry, states[entry.task.queue].get(entry.name), now_ms)
        self._forget(states, now_ms)
        next_ms = min(entry.schedule.next_ms(now_ms) for entry in self.entries)
        self._asks_at = asked_at + min(LONGEST_SECONDS, (next_ms - now_ms) / 1000)
        return max(0.0, self._asks_at - time.monotonic())

    def _fire(self, entry: Entry, state: ScheduleState | None, now_ms: int) -> None:
        try:
            for slot_ms in entry.schedule.due(self._last_ms(entry, state, now_ms), now_ms):
                entry.fire(self._broker, slot_ms)
        except BrokerError:
            raise
        except Exception:
            # A function of the project, like the task's `client`, was called: it must not keep others from starting.
            logger.exception("schedule %s: its job could not be made", entry.name)

    def _last_ms(self, entry: Entry, state: ScheduleState | None, now_ms: int) -> int:
        """The moment up to which all slots of an entry are over."""
        sound_ms = now_ms + CLOCK_WAS_WRONG_MS
        is_sound = state is not None and max(state.last_slot_ms, state.began_ms) < sound_ms
        if state is not None and is_sound and state.definition == entry.schedule.definition:
            self._known_since.setdefault(entry.name, state.began_ms)
            return max(state.last_slot_ms, state.began_ms)
        if state is None or not is_sound or entry.name not in self._known_since:
            self._known_since[entry.name] = now_ms
            self._broker.begin(entry.task.queue, entry.name, entry.schedule.definition, now_ms)
            return now_ms
        # Another version of the project has begun with another definition, as during a deploy: both go on.
        return max(state.last_slot_ms, self._known_since[entry.name])

    def _forget(self, states: Mapping[str, Mapping[str, ScheduleState]], now_ms: int) -> None:
        names = {entry.name for entry in self.entries}
        for queue, known in states.items():
            touched = {name: max(state.last_slot_ms, state.began_ms) for name, state in known.items()}
            old = [name for name in touched.keys() - names if touched[name] < now_ms - FORGOTTEN_MS]
            if old:
                self._broker.drop_schedules(queue, old)


def all_entries(config: Config) -> list[Entry]:
    """Every schedule of this project, of its code and of its settings, by name. Raises ConfigurationError."""
    entries = [Entry(task=task, schedule=s) for task in registry.all_tasks().values() for s in task.schedule]
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
        all_entries(config)
    except ConfigurationError as error:
        return [Error(str(error), id="rtq.E002")]
    return []


def _entry_from_settings(name: str, options: Mapping[str, Any]) -> Entry:
    try:
        task = registry.get_task(str(options.get("task")))
        schedule = schedule_from_settings(name, options)
        task.check_call(schedule.args, dict(schedule.kwargs))
    except (TaskNotFound, InvalidTask, TypeError) as error:
        raise ConfigurationError(f'RTQ["SCHEDULES"][{name!r}]: {error}') from error
    return Entry(task=task, schedule=schedule)
