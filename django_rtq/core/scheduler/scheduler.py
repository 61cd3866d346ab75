"""The scheduler: queues due jobs, fires schedules, and deletes expired outcomes. Any number of them may run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence

from django_rtq.core import signals
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.schedule_store import ScheduleState, StoredSchedules
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.extension import parts
from django_rtq.core.scheduler.registry import ScheduledTask, load_schedules, schedules_in
from django_rtq.core.tasks import registry
from django_rtq.core.threads import Loop
from django_rtq.core.transactions import outbox_database
from django_rtq.exceptions import BrokerError

MAX_SECONDS = 60.0  # between two reads of the server's time, as its clock may be set forward
CLOCK_WAS_WRONG_MS = 3_600_000  # see now_ms in lua/lib/prelude.lua
OUTDATED_MS = 90 * 86_400_000  # the state of an undeclared schedule is deleted if it has not fired for so long
logger = logging.getLogger("django_rtq")

MAX_CALLS = 4  # of promote, for 100 jobs each, in one round trip: Redis serves nobody else meanwhile
CHECK_SECONDS = 10.0  # how often wait() checks whether a thread of this process has noticed changed schedules
FORGET_EACH_SECONDS = 1.0  # how often apps search for what is too old, if there is something to do
CLEANUP_SECONDS = 3600.0  # how often it searches for unused queues
RESTART_CHECK_SECONDS = 3600.0  # how often it looks whether Redis was restarted; at once if a connection was lost
MAX_WAIT_SECONDS = 60.0  # if a wake-up signal gets lost, heartbeats promote due jobs as well


class Dispatcher:
    """Fires periodic jobs: each slot of a schedule once, however many schedulers run. For one thread.

    1. when a slot is due, read the time and the last slot of each schedule from Redis
    2. read the schedules of the database and the switches again if they were changed
    3. start counting for a schedule that is new or whose definition has changed: it has missed nothing
    4. find the slots that are due since then
    5. let the script `fire_schedule` enqueue a job for each, unless another scheduler was faster
    """

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker = broker
        self._queues = frozenset(queues)
        self._declared = schedules_in(broker.backend, broker.config)
        self._stored = StoredSchedules()  # as applied by this process
        self._warned: set[tuple[str, str]] = set()  # name and problem of invalid schedules: each is logged once
        self._known_since: dict[tuple[str, str], int] = {}  # name, definition -> since when slots count, ms
        self._next_query_at = 0.0  # when to query Redis again, on the monotonic clock
        self._apply(self._declared, {})

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
        for queue, of_queue in states.items():
            touched = {name: max(state.last_slot_ms, state.began_ms) for name, state in of_queue.items()}
            old = [name for name in touched.keys() - self._names if touched[name] < now_ms - OUTDATED_MS]
            if old:
                self._broker.schedules.forget(queue, old)
        next_ms = min(entry.schedule.next_ms(now_ms) for entry in self.entries)
        self._next_query_at = queried_at + min(MAX_SECONDS, (next_ms - now_ms) / 1000)
        return max(0.0, self._next_query_at - time.monotonic())

    def _read_schedules(self) -> None:
        stored = self._broker.schedules.read()
        if self._stored.version and not stored.version:  # deleting all schedules leaves a version
            logger.warning("Redis has lost the schedules of the database and the disabled ones: restoring them")
            self._broker.schedules.restore(self._stored)
            stored = self._broker.schedules.read()
        self._apply(*load_schedules(self._declared, stored))
        self._stored = stored
        self._next_query_at = 0.0

    def _apply(self, schedules: Sequence[ScheduledTask], broken: Mapping[str, str]) -> None:
        self.entries = [entry for entry in schedules if entry.enabled and entry.task.queue in self._queues]
        self._queues_with_schedules = sorted({entry.task.queue for entry in self.entries})
        self._names = {entry.name for entry in schedules} | broken.keys()
        for name, problem in broken.items() - self._warned:
            logger.warning("schedule %s is invalid and does not fire: %s", name, problem)
        self._warned |= broken.items()

    def _fire(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> None:
        try:
            for slot_ms in entry.schedule.due(self._last_ms(entry, state, now_ms), now_ms):
                entry.fire(self._broker, slot_ms)
        except BrokerError:
            raise
        except Exception:
            # Code of the project failed, such as the `client` function of the task. Other schedules have to fire.
            logger.exception("schedule %s: its job could not be created", entry.name)

    def _last_ms(self, entry: ScheduledTask, state: ScheduleState | None, now_ms: int) -> int:
        """The moment up to which all slots of a schedule are done."""
        definition = entry.definition
        definition_of_schedule = entry.name, definition
        sound_ms = now_ms + CLOCK_WAS_WRONG_MS
        is_sound = state is not None and max(state.last_slot_ms, state.began_ms) < sound_ms
        if state is not None and is_sound and state.definition == definition:
            self._known_since.setdefault(definition_of_schedule, state.began_ms)
            return max(state.last_slot_ms, state.began_ms)
        if state is None or not is_sound or definition_of_schedule not in self._known_since:
            self._known_since[definition_of_schedule] = now_ms
            self._broker.schedules.begin(entry.task.queue, entry.name, definition, now_ms)
            return now_ms
        # Another version of the project uses another definition, as during a deploy: both continue.
        return max(state.last_slot_ms, self._known_since[definition_of_schedule])


class Scheduler(Loop):
    """Promotes due jobs of some queues. Sleeps until the next job is due; an earlier one wakes it (G7)."""

    name = "scheduler"

    def __init__(self, broker: WorkerBroker, queues: Sequence[str]) -> None:
        super().__init__()
        self._broker = broker
        self._queues = list(queues)
        self._dispatcher = Dispatcher(broker, queues)
        self._calls = 1
        self._next_cleanup = 0.0  # time.monotonic() of the next search for unused queues
        self._forgetting = [make(broker, queues) for make in parts("forgetting")]
        self._next_forgetting = 0.0  # time.monotonic() of when apps search again for what is too old
        self._next_restart_check = 0.0  # time.monotonic()
        self._has_connected = False
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.of(queue).due_signal for queue in queues],
            role="scheduler",
            on_connect=self._on_connect,
        )

    def tick(self) -> float:
        """Promote, trim and fire, a bounded number of jobs for each queue."""
        seconds, promoted, is_trimmed = self._broker.maintain(self._queues, promote_calls=self._calls)
        signals.send_promoted(Scheduler, promoted)
        if time.monotonic() >= self._next_forgetting:
            self._next_forgetting = time.monotonic() + FORGET_EACH_SECONDS  # also if one of them fails
            if not all([forget() for forget in self._forgetting]):
                is_trimmed, self._next_forgetting = False, 0.0
        # If many jobs are due, the next round trip promotes several batches.
        self._calls = MAX_CALLS if seconds == 0.0 else 1
        # Last, because a Redis server without memory rejects new jobs, but not the rest.
        until_slot = self._dispatcher.fire_due()
        if self._may_have_restarted():
            self._rewrite_log()
        if seconds == 0.0 or not is_trimmed:
            return 0.0
        if time.monotonic() >= self._next_cleanup:
            self._next_cleanup = time.monotonic() + CLEANUP_SECONDS
            used = {*self._queues, *registry.declared_queues(self._broker.backend)}
            for name in self._broker.forget_unused(used):
                logger.info("queue %s is forgotten: it is empty, not declared, and had no worker for a day", name)
        return min(wait for wait in (seconds, until_slot, MAX_WAIT_SECONDS) if wait is not None)

    def _on_connect(self) -> None:
        if self._has_connected:  # the connection was lost
            self._next_restart_check = 0.0
        self._has_connected = True

    def _may_have_restarted(self) -> bool:
        return time.monotonic() >= self._next_restart_check

    def _rewrite_log(self) -> None:
        answer = self._broker.rewrite_log_after_restart()
        self._next_restart_check = time.monotonic() + (math.inf if answer == "unknown" else RESTART_CHECK_SECONDS)
        if answer == "rewritten":
            logger.info("Redis was restarted: it rewrites its append-only file, in case that had been cut off")
        elif answer == "refused":
            logger.warning(
                "Redis was restarted, and refuses BGREWRITEAOF to this user. If the log of Redis says "
                '"Truncating the AOF", run BGREWRITEAOF by hand: its next start may misplace jobs otherwise'
            )

    def wait(self, seconds: float) -> None:
        """Wait until the next job is due, an earlier one is scheduled, schedules were changed, or Redis may have been
        restarted."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not (
            self._dispatcher.is_outdated or self._may_have_restarted()
        ):
            is_last = left < CHECK_SECONDS + 0.1
            if self._reader.wait(left if is_last else CHECK_SECONDS, is_exact=is_last):
                return

    def interrupt(self) -> None:
        """End the blocking read, and with it the thread."""
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.close()


def scheduler_loops(broker: WorkerBroker, queues: Sequence[str]) -> list[Loop]:
    """The scheduler; the relay if there is an outbox; the watcher of incidents if a receiver is connected."""
    loops: list[Loop] = [Scheduler(broker, queues)]
    if alias := outbox_database():
        loops += [relay(broker, alias) for relay in parts("relay")]
    if signals.incident_opened.receivers or signals.incident_closed.receivers:
        loops += [watcher(broker) for watcher in parts("incident_watcher")]
    return loops
