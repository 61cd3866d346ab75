"""How tasks and clients did lately: counters that workers add up and write down once a second.

They are statistics: what a worker that is killed had not written down yet is missing. The runs that it was in at that
moment are counted as failed by whoever takes its jobs back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.histogram import percentile
from django_rtq.broker.redis.client import as_dict
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS

MOST_LANES = 1000  # that are looked at for those with most jobs
_BUCKET = re.compile(r"[rw]-?\d+")  # seconds of a run, milliseconds of a wait


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """How the runs of a task went."""

    done: int = 0
    failed: int = 0  # runs that failed
    retried: int = 0  # of those, the ones that were followed by another
    dead: int = 0
    expired: int = 0
    run_p50: float | None = None  # seconds; of runs that ended well or not; None: there was none
    run_p95: float | None = None
    wait_p50: float | None = None  # seconds that jobs waited for their first run
    wait_p95: float | None = None

    @property
    def failure_rate(self) -> float | None:
        """Of all runs, 0 to 1; None: there was none."""
        runs = self.done + self.failed
        return self.failed / runs if runs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDetails:
    """One client of a queue."""

    client: str
    queued: int  # jobs in its lanes
    oldest_seconds: float | None  # how long its first job has been waiting; None: none waits
    done_lately: int  # runs of the last hour
    busy_seconds: float  # how long workers were busy with them
    share: float  # of all the time that workers were busy with this queue in the last hour, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Some clients of a queue."""

    clients: list[ClientDetails] = field(default_factory=list)
    lanes: int = 0  # with jobs that wait: clients, counted once for each priority
    looked_at: int = 0  # of those, the ones whose first jobs wait longest


class Statistics:
    """Reads them. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys

    def tasks(self, queues: Iterable[str], hours: int) -> dict[str, TaskFigures]:
        """The figures of the present hour and so many before it, in one round trip."""
        calls = [SCRIPTS["task_metrics"].call(self._keys.of(queue), (hours,)) for queue in queues]
        return read_figures(self._redis.execute(calls, resend=True))

    def clients(self, queue: str, limit: int, *, by: str) -> Clients:
        """The clients with most waiting jobs, or with most of the work, in one round trip."""
        reply = self._redis.execute_one(self.ask_for_clients(queue, limit), resend=True)
        return self.read_clients(reply, limit, by=by)

    def ask_for_clients(self, queue: str, limit: int) -> Command:
        """The command whose reply read_clients() reads."""
        return SCRIPTS["client_metrics"].call(self._keys.of(queue), (MOST_LANES, min(limit, 100)))

    @staticmethod
    def read_clients(reply: Any, limit: int, *, by: str) -> Clients:
        """The clients with most of what is asked for."""
        now_ms, lanes, total_us, found = reply
        clients = [
            ClientDetails(
                client=client.decode(errors="replace"),
                queued=queued,
                oldest_seconds=max(0.0, (now_ms - float(since)) / 1000) if since else None,
                done_lately=runs,
                busy_seconds=busy_us / 1_000_000,
                share=min(1.0, busy_us / total_us) if total_us else 0.0,
            )
            for client, queued, since, runs, busy_us in found
        ]
        clients.sort(key=lambda one: (one.share if by == "share" else one.queued, one.queued), reverse=True)
        return Clients(clients=clients[:limit], lanes=lanes, looked_at=min(lanes, MOST_LANES))


def read_figures(replies: Iterable[Any]) -> dict[str, TaskFigures]:
    """What the script `tasks` answers for some queues, added up by the names of tasks."""
    found: dict[str, dict[str, Any]] = {}
    for reply in replies:
        for name, number in as_dict(reply).items():
            kind, _, task = name.decode(errors="replace").partition(" ")
            of_task = found.setdefault(task, {"r": {}, "w": {}})
            if _BUCKET.fullmatch(kind):
                buckets, bucket = of_task[kind[0]], int(kind[1:])
                buckets[bucket] = buckets.get(bucket, 0) + int(number)
            else:
                of_task[kind] = of_task.get(kind, 0) + int(number)
    return {task: _figures(counts) for task, counts in sorted(found.items())}


def _figures(counts: Mapping[str, Any]) -> TaskFigures:
    runs, waits = counts["r"], counts["w"]
    return TaskFigures(
        **{name: counts.get(name, 0) for name in ("done", "failed", "retried", "dead", "expired")},
        run_p50=percentile(runs, 0.5),
        run_p95=percentile(runs, 0.95),
        wait_p50=_seconds(percentile(waits, 0.5)),
        wait_p95=_seconds(percentile(waits, 0.95)),
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
