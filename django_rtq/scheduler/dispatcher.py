"""The timetable: starts periodic jobs of some queues, each slot of a schedule once, however many do the same.

1. when the next slot has come, ask Redis for its time and for the last slot of each schedule
2. read the plan anew when it was changed: what people have made, changed or switched off holds from now on
3. begin to count where a schedule, or its definition, is new: what would have been before was not missed
4. find the slots that are due since then
5. let the script `fire` start a job for each, unless another scheduler was faster
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from django_rtq.broker.broker import Broker
from django_rtq.broker.schedule_store import ScheduleState, StoredSchedules
from django_rtq.exceptions import BrokerError
from django_rtq.redaction import Secrets
from django_rtq.scheduler.registry import ScheduledTask, ScheduleSet, declared_entries, load_schedules

logger = logging.getLogger("django_rtq")

LONGEST_SECONDS = 60.0  # until it asks for the time again: the server's clock may have been put forward
CLOCK_WAS_WRONG_MS = 3_600_000  # see now_ms in lua/lib/prelude.lua
FORGOTTEN_MS = 90 * 86_400_000  # a schedule that is declared no more is forgotten when it has not fired for so long


class Dispatcher:
    """All entries of some queues. For one thread."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self._queues = frozenset(queues)
        self._declared = declared_entries(broker.config)
        self._plan = StoredSchedules()  # as far as it was obeyed
        self._told: set[tuple[str, str]] = set()  # what was said of rows that cannot be obeyed
        self._known_since: dict[tuple[str, str], int] = {}  # name, definition -> since when this process counts, ms
        self._asks_at = 0.0  # when it asks Redis again, on the monotonic clock
        self._obey(ScheduleSet(entries=self._declared, broken={}))

    @property
    def is_outdated(self) -> bool:
        """Whether the plan was changed since it was read."""
        return self._broker.schedules.latest_version != self._plan.version

    def fire_due(self) -> float | None:
        """Start what is due now. Returns the seconds until it has to be called again; None: there is no entry."""
        while True:
            if self.is_outdated:
                self._read_plan()
            if not self.entries:
                return None
            if (left := self._asks_at - time.monotonic()) > 0:
                return left
            now_ms, states = self._broker.schedules.states(self._asked)
            if not self.is_outdated:
                break
        asked_at = time.monotonic()
        for entry in self.entries:
            self._fire(entry, states[entry.task.queue].get(entry.name), now_ms)
        self._forget(states, now_ms)
        next_ms = min(entry.schedule.next_ms(now_ms) for entry in self.entries)
        self._asks_at = asked_at + min(LONGEST_SECONDS, (next_ms - now_ms) / 1000)
        return max(0.0, self._asks_at - time.monotonic())

    def _read_plan(self) -> None:
        plan = self._broker.schedules.read()
        if self._plan.version and not plan.version:  # whoever empties it leaves a version
            logger.warning("Redis has lost which schedules people had made or switched off: they are put back")
            self._broker.schedules.restore(self._plan)
            plan = self._broker.schedules.read()
        self._obey(load_schedules(self._declared, plan))
        self._plan = plan
        self._asks_at = 0.0

    def _obey(self, found: ScheduleSet) -> None:
        self.entries = [entry for entry in found.entries if entry.enabled and entry.task.queue in self._queues]
        self._asked = sorted({entry.task.queue for entry in self.entries})
        self._names = {entry.name for entry in found.entries} | found.broken.keys()
        for name, problem in found.broken.items() - self._told:
            logger.warning("schedule %s starts nothing: %s", name, problem)
        self._told |= found.broken.items()

    def _fire(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> None:
        try:
            for slot_ms in entry.schedule.due(self._last_ms(entry, state, now_ms), now_ms):
                entry.fire(self._broker, slot_ms)
        except BrokerError:
            raise
        except Exception as error:
            # A function of the project, like the task's `client`, was called: it must not keep others from starting.
            secrets = Secrets.of(entry.task.name, list(entry.schedule.args), dict(entry.schedule.kwargs))
            logger.error("schedule %s: its job could not be made", entry.name, exc_info=secrets.hide_in_error(error))

    def _last_ms(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> int:
        """The moment up to which all slots of an entry are over."""
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
        # Another version of the project has begun with another definition, as during a deploy: both go on.
        return max(state.last_slot_ms, self._known_since[known])

    def _forget(self, states: Mapping[str, Mapping[str, ScheduleState]], now_ms: int) -> None:
        for queue, known in states.items():
            touched = {name: max(state.last_slot_ms, state.began_ms) for name, state in known.items()}
            old = [name for name in touched.keys() - self._names if touched[name] < now_ms - FORGOTTEN_MS]
            if old:
                self._broker.schedules.forget(queue, old)
