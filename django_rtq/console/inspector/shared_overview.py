"""The overview as all viewers of a process share it: read once a second at most, and only what has changed.

1. one round trip reads the names of queues and workers, and the pulse of the queues known before
2. if the pulse of a queue has changed, the queue is read again; of the others the two that were read longest ago
3. with 2., all workers are read; of many workers, only from time to time

A pulse consists of the counters of the minute, and the numbers of delayed and of running jobs. What is not in it, such
as the age of the oldest job, is right after the next event, or when it is the queue's turn in 2.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django_rtq.console.inspector.details import WorkerDetails
from django_rtq.console.inspector.metrics.deploys import deploy_commands
from django_rtq.console.inspector.metrics.time_series import Series
from django_rtq.console.inspector.overview import Overview, OverviewReader
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.exceptions import BrokerError
from django_rtq.workflows.workflow_states import workflow_commands

SHARED_SECONDS = 1.0
GLANCE_SECONDS = 10.0
PULSES_AT_ONCE = 20  # queues that one script looks at
HISTORY_SECONDS = 60.0  # counters of steps longer than a minute
MOST_WORKERS = 1000  # with more, all queues are read each time, and workers only so often that these are, in a second
_REREAD = 2  # unchanged queues that are read again each time
_UNSEEN_SECONDS = 10.0  # of a worker; then its queues are read: its lease may have ended
_MINUTES, _STEP = 60, 1


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read of a queue."""

    replies: Mapping[str, Any]  # kind -> reply
    at: float  # time.monotonic()


@dataclass(frozen=True, slots=True)
class _Pulse:
    """The last look at a queue."""

    counters: Mapping[bytes, bytes]  # of the minute of the look
    rest: tuple[Any, ...]


class SharedOverview:
    """Reads the overview for the pages of the admin. Any thread may use it."""

    def __init__(self, broker: Broker, reader: OverviewReader) -> None:
        self._broker, self._keys, self._reader = broker, broker.keys, reader
        self._lock = threading.Lock()
        self._latest: Overview | BrokerError | None = None
        self._latest_at = 0.0
        self._known: dict[str, _Known] = {}
        self._pulses: dict[str, _Pulse] = {}
        self._workers: list[str] = []
        self._workers_at = -math.inf  # time.monotonic() when they were read
        self._minute = 0  # of the last pulses, since 1970
        self._history: dict[tuple[int, int], tuple[float, list[str], list[Series]]] = {}

    def read(self, *, fresh: bool = False) -> Overview:
        """The overview, at most a second old; `fresh`: read now, all of it. One or two round trips.

        Raises BrokerError. If a read fails, those who wait for it get the same error.
        """
        asked_at = time.monotonic()
        with self._lock:
            least = asked_at if fresh else asked_at - SHARED_SECONDS
            if self._latest is None or self._latest_at < least:
                self._latest = self._try_to_read(fresh=fresh)
                self._latest_at = time.monotonic()
            if isinstance(self._latest, BrokerError):
                raise self._latest
            return self._latest

    def glance(self) -> Overview | None:
        """The last overview if it is young, without asking Redis."""
        latest, age = self._latest, time.monotonic() - self._latest_at
        return latest if isinstance(latest, Overview) and age < GLANCE_SECONDS else None

    def history(self, overview: Overview, minutes: int, step: int) -> list[Series]:
        """The counters of all queues, up to a minute old."""
        names, key = [row.details.name for row in overview.queues], (minutes, step)
        at, of, series = self._history.get(key, (0.0, [], []))
        if of != names or time.monotonic() - at >= HISTORY_SECONDS:
            series = self._reader.series.read_many(names, minutes, step, int(overview.now.timestamp() * 1000))
            self._history[key] = (time.monotonic(), names, series)
        return series

    # -- inside, under the lock

    def _try_to_read(self, *, fresh: bool) -> Overview | BrokerError:
        try:
            return self._read(fresh=fresh)
        except BrokerError as error:
            self._known, self._pulses = {}, {}
            return error

    def _read(self, *, fresh: bool) -> Overview:
        watched = list(self._known) if len(self._workers) <= MOST_WORKERS else []
        flows, deploys, pulse = (
            workflow_commands(self._broker),
            deploy_commands(self._broker),
            self._pulse_commands(watched),
        )
        names, workers, info, replies = self._reader.read_names(with_info=True, also=[*flows, *deploys, *pulse])
        of_flows, replies = replies[: len(flows)], replies[len(flows) :]
        pulses = replies[len(deploys) :]
        now_ms = pulses[-1][0] if pulses else info.now_ms
        entries = [entry for _, *of_queues in pulses for entry in of_queues]
        changed = self._note_pulses(dict(zip(watched, entries, strict=False)), now_ms // 60_000)
        if fresh or sorted(workers) != self._workers:
            changed = set(names)
        series = self._series_that_hold(names, changed, now_ms)
        stale = sorted(set(names).difference(series))

        kept_workers = None if fresh else self._workers_that_hold(names, workers)
        processing = kept_workers and {name: self._known[name].replies["processing"] for name in names}
        of_stale, notes = self._reader.read_queues(
            stale, workers, (_MINUTES, _STEP), info.now_ms, processing=processing or None
        )
        if not kept_workers:
            self._workers_at = time.monotonic()
        self._workers = sorted(workers)
        self._keep(stale, of_stale)
        self._known = {name: self._known[name] for name in names}
        of_all = {kind: [_at(self._known[name], kind, now_ms, name in stale) for name in names] for kind in _KINDS}
        for name in stale:
            series[name] = self._reader.series.read(name, _MINUTES, _STEP, self._known[name].replies["history"])
        of_all["workflows"], of_all["deploys"] = of_flows, replies[: len(deploys)]
        in_order = [series[name] for name in names]
        return self._reader.make_overview(names, info, of_all, notes, in_order, workers=kept_workers)

    def _workers_that_hold(self, names: Sequence[str], workers: Sequence[str]) -> list[WorkerDetails] | None:
        """The workers of the last overview, if reading so many takes long and was done lately. None: read them."""
        seconds = len(workers) / MOST_WORKERS
        is_old = time.monotonic() - self._workers_at >= seconds
        if seconds <= 1 or is_old or not self._known.keys() >= set(names) or not isinstance(self._latest, Overview):
            return None
        return self._latest.workers

    def _series_that_hold(self, names: Sequence[str], changed: set[str], now_ms: int) -> dict[str, Series]:
        """The counters of queues of which nothing has to be read again."""
        unsure = changed | self._queues_of_unseen_workers()
        unchanged = [name for name in names if name in self._known and name not in unsure]
        unchanged.sort(key=lambda name: self._known[name].at)
        later = {name: self._reader.series.later(name, _MINUTES, _STEP, now_ms) for name in unchanged[_REREAD:]}
        return {name: series for name, series in later.items() if series is not None}

    def _pulse_commands(self, watched: Sequence[str]) -> list[Command]:
        queues = [self._keys.of(name) for name in watched]
        return [
            SCRIPTS["pulse"].call_many(queues[start : start + PULSES_AT_ONCE], (self._minute,))
            for start in range(0, len(queues), PULSES_AT_ONCE)
        ]

    def _note_pulses(self, entries: Mapping[str, Any], minute: int) -> set[str]:
        """Returns the queues whose pulse has changed."""
        changed = set(self._known) if minute - self._minute not in (0, 1) else set()
        pulses = {}
        for name, (before, since, *rest) in entries.items():
            last = self._pulses.get(name)
            if last is None or since or (last.counters, last.rest) != (as_dict(before), tuple(rest)):
                changed.add(name)
            pulses[name] = _Pulse(as_dict(since if minute != self._minute else before), tuple(rest))
        self._pulses, self._minute = pulses, minute
        return changed

    def _queues_of_unseen_workers(self) -> set[str]:
        workers = self._latest.workers if isinstance(self._latest, Overview) else []
        unseen = [
            worker
            for worker in workers
            if worker.last_seen_seconds is None or worker.last_seen_seconds > _UNSEEN_SECONDS
        ]
        return {queue for worker in unseen for queue in worker.queues}

    def _keep(self, names: Sequence[str], replies: Mapping[str, Sequence[Any]]) -> None:
        now = time.monotonic()
        for place, name in enumerate(names):
            self._known[name] = _Known({kind: replies[kind][place] for kind in (*_KINDS, "history")}, now)


_KINDS = ("overview", "processing", "tasks", "task_failures", "failures", "busiest")


def _at(known: _Known, kind: str, now_ms: int, is_new: bool) -> Any:
    """A reply as if it were of now: it tells moments, which are shown as ages."""
    reply = known.replies[kind]
    return reply if is_new or kind not in ("overview", "processing") else [now_ms, *reply[1:]]
