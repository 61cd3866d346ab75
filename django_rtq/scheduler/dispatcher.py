"""Fires periodic jobs: each slot of a schedule once, however many schedulers run.

1. when a slot is due, read the time and the last slot of each schedule from Redis
2. read the schedules of the database and the switches again if they were changed
3. start counting for a schedule that is new or whose definition has changed: it has missed nothing
4. find the slots that are due since then
5. let the script `fire_schedule` enqueue a job for each, unless another scheduler was faster
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from django_rtq.broker.broker import Broker
from django_rtq.broker.schedule_store import ScheduleState, StoredSchedules
from django_rtq.exceptions import BrokerError
from django_rtq.redaction import Secrets
from django_rtq.scheduler.registry import ScheduledTask, ScheduleSet, load_schedules, schedules_in

logger = logging.getLogger("django_rtq")

MAX_SECONDS = 60.0  # between two reads of the server's time, as its clock may be set forward
CLOCK_WAS_WRONG_MS = 3_600_000  # see now_ms in lua/lib/prelude.lua
OUTDATED_MS = 90 * 86_400_000  # the state of an undeclared schedule is deleted if it has not fired for so long


class Dispatcher:
    """Fires the schedules of some queues. For one thread."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self._queues = frozenset(queues)
        self._declared = schedules_in(broker.backend, broker.config)
        self._stored = StoredSchedules()  # as applied by this process
        self._warned: set[tuple[str, str]] = set()  # name and problem of invalid schedules: each is logged once
        self._known_since: dict[tuple[str, str], int] = {}  # name, definition -> since when slots count, ms
        self._next_query_at = 0.0  # when to query Redis again, on the monotonic clock
        self._apply(ScheduleSet(entries=self._declared, broken={}))

    @property
    def is_outdated(self) -> bool:
        """Whether schedules were changed since they were read."""
        return self._broker.schedules.latest_version != self._stored.version

    def fire_due(self) -> float | None:
        """Fire what is due. Returns the seconds until the next call; None if there are no schedules."""
        while True:
            if self.is_outdated:
                self._read_schedules()
            if not self.entries:
                return None
            if (left := self._next_query_at - time.monotonic()) > 0:
                return left
            now_ms, states = self._broker.schedules.states(self._queues_with_schedules)
            if not self.is_outdated:
                break
        queried_at = time.monotonic()
        for entry in self.entries:
            self._fire(entry, states[entry.task.queue].get(entry.name), now_ms)
        self._drop_outdated(states, now_ms)
        next_ms = min(entry.schedule.next_ms(now_ms) for entry in self.entries)
        self._next_query_at = queried_at + min(MAX_SECONDS, (next_ms - now_ms) / 1000)
        return max(0.0, self._next_query_at - time.monotonic())

    def _read_schedules(self) -> None:
        stored = self._broker.schedules.read()
        if self._stored.version and not stored.version:  # deleting all schedules leaves a version
            logger.warning("Redis has lost the schedules of the database and the disabled ones: restoring them")
            self._broker.schedules.restore(self._stored)
            stored = self._broker.schedules.read()
        self._apply(load_schedules(self._declared, stored))
        self._stored = stored
        self._next_query_at = 0.0

    def _apply(self, found: ScheduleSet) -> None:
        self.entries = [entry for entry in found.entries if entry.enabled and entry.task.queue in self._queues]
        self._queues_with_schedules = sorted({entry.task.queue for entry in self.entries})
        self._names = {entry.name for entry in found.entries} | found.broken.keys()
        for name, problem in found.broken.items() - self._warned:
            logger.warning("schedule %s is invalid and does not fire: %s", name, problem)
        self._warned |= found.broken.items()

    def _fire(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> None:
        try:
            for slot_ms in entry.schedule.due(self._last_ms(entry, state, now_ms), now_ms):
                entry.fire(self._broker, slot_ms)
        except BrokerError:
            raise
        except Exception as error:
            # Code of the project failed, such as the `client` function of the task. Other schedules have to fire.
            secrets = Secrets.of(entry.task.name, list(entry.schedule.args), dict(entry.schedule.kwargs))
            hidden = secrets.hide_in_error(error)
            logger.error("schedule %s: its job could not be created", entry.name, exc_info=hidden)

    def _last_ms(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> int:
        """The moment up to which all slots of a schedule are done."""
        definition = entry.definition
        known = entry.name, definition
        sound_ms = now_ms + CLOCK_WAS_WRONG_MS
        is_sound = state is not None and max(state.last_slot_ms, state.began_ms) < sound_ms
        if state is not None and is_sound and state.definition == definition:
            self._known_since.setdefault(known, state.began_ms)
            return max(state.last_slot_ms, state.began_ms)
        if state is None or not is_sound or known not in self._known_since:
            self._known_since[known] = now_ms
            self._broker.schedules.begin(entry.task.queue, entry.name, definition, now_ms)
            return now_ms
        # Another version of the project uses another definition, as during a deploy: both go on.
        return max(state.last_slot_ms, self._known_since[known])

    def _drop_outdated(self, states: Mapping[str, Mapping[str, ScheduleState]], now_ms: int) -> None:
        for queue, known in states.items():
            touched = {name: max(state.last_slot_ms, state.began_ms) for name, state in known.items()}
            old = [name for name in touched.keys() - self._names if touched[name] < now_ms - OUTDATED_MS]
            if old:
                self._broker.schedules.forget(queue, old)
