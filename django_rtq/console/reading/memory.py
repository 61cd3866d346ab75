"""What takes the memory of Redis, by queue and kind: estimated from some keys of each kind, without a script.

Redis looks at some entries of a key (MEMORY USAGE), whatever its size. Of keys that there are many of, such as lanes
and logs, some are read, and stand for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django_rtq.console.merging import COUNTS
from django_rtq.console.reading.metrics.reader import HOUR_MS
from django_rtq.console.reading.queues import QueueReader, ask
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QUEUE_KEYS, QueueKeys
from django_rtq.core.broker.redis.client import clock_ms
from django_rtq.core.broker.redis.commands import Command

KINDS = ("jobs", "order", "outcomes", "logs", "steps", "metrics", "workflows", "other")
MOST_QUEUES = 20  # those with most jobs and outcomes
SAMPLES = 20  # entries of a key that Redis looks at
SAMPLED = 10  # keys of those that there are many of
_KIND_OF = {
    **dict.fromkeys(("jobs", "failures", "crashes", "errors", "progress", "waiting_since", "dead", "digests"), "jobs"),
    **dict.fromkeys(("lanes", "bands", "scheduled", "retrying", "scheduled_by_client", "cancelled_in_lane"), "order"),
    **dict.fromkeys(("results", "recent_results", "result_times", "result_expiry", "no_outcome"), "outcomes"),
    **dict.fromkeys(("no_outcome_before", "finished", "finished_before"), "outcomes"),
    **{"logged": "logs", "step_jobs": "steps", "totals": "metrics", "failing": "metrics", "ended_members": "workflows"},
    **dict.fromkeys(("workflows", "workflow_states", "workflow_keys", "unstarted", "stuck_workflows"), "workflows"),
}
_OF_A_WORKFLOW = ("workflow", "workflow_steps", "waiting_members", "starting_parts", "step_results", "open_steps")
#: Keys that are named by a number since 1970: the ms of one, and how many of them are kept.
_BY_TIME = {
    **{"stats": (60_000, 2880), "done_runs": (60_000, 10), "failed_runs": (60_000, 10), "hours": (HOUR_MS, 744)},
    **{"tasks": (HOUR_MS, 50), "client_runs": (600_000, 7), "client_time": (600_000, 7)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMemory:
    """How many bytes a queue takes, about. What belongs to no queue is in that of the workflows."""

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict, metadata=COUNTS)  # kind -> bytes

    @property
    def total(self) -> int:
        """Of all kinds."""
        return sum(self.sizes.values())


class _Sample(NamedTuple):
    """A key that is read, and for how many it stands."""

    kind: str
    key: bytes
    weight: float = 1.0


class MemoryReader:
    """Reads how much memory queues take. Any thread may use it. Raises BrokerUnavailable."""

    def __init__(self, broker: Broker) -> None:
        self._queues, self._redis, self._keys = QueueReader(broker), broker.redis, broker.keys

    def read(self) -> list[QueueMemory]:
        """The queues that take most, the largest first; of very many, of those with most jobs."""
        queues = sorted(self._queues.details(self._queues.names()), key=lambda queue: -_entries(queue))
        by_name = {queue.name: self._keys.of(queue.name) for queue in queues[:MOST_QUEUES]}
        lists = ask(self._redis, {name: [*_lists(keys), ("TIME",)] for name, keys in by_name.items()})
        samples = [(name, each) for name, keys in by_name.items() for each in _samples(keys, *lists[name])]
        usage: list[Command] = [("MEMORY", "USAGE", each.key, "SAMPLES", SAMPLES) for _, each in samples]
        sums = {name: Counter[str]() for name in by_name}
        for (name, each), size in zip(samples, self._redis.execute_each(usage, resend=True), strict=True):
            if isinstance(size, int):  # or else it is missing, or Redis did not measure it
                sums[name][each.kind] += round(size * each.weight)
        rows = [QueueMemory(name=name, sizes={kind: of[kind] for kind in KINDS}) for name, of in sums.items()]
        return sorted(rows, key=lambda queue: -queue.total)


def _entries(queue: Any) -> int:
    return int(queue.waiting + queue.dead + queue.running + queue.finished)


def _lists(keys: QueueKeys) -> list[Command]:
    """What says which keys there are of those that are named by their content, and how many."""
    last, first = ("LRANGE", keys.logged, -SAMPLED, -1), ("ZRANGE", keys.lanes, 0, SAMPLED - 1)
    steps, flows = ("HRANDFIELD", keys.step_jobs, SAMPLED), ("ZREVRANGE", keys.workflows, 0, SAMPLED - 1)
    numbers = ("LLEN", keys.logged), ("ZCARD", keys.lanes), ("HLEN", keys.step_jobs), ("ZCARD", keys.workflows)
    return [last, first, steps, flows, *numbers]


def _samples(keys: QueueKeys, logs: Any, lanes: Any, steps: Any, flows: Any, *numbers: Any) -> Iterator[_Sample]:
    *counts, time = numbers
    now_ms = clock_ms(time)
    for name, key in QUEUE_KEYS.items():
        if not key.per and key.kind != "none":
            yield _Sample(_KIND_OF.get(name, "other"), getattr(keys, name))
    many = {
        "logs": [keys.log + job_id for job_id in logs],
        "order": [keys.lane + lane for lane in lanes],
        "steps": [keys.steps + job_id for job_id in steps],
        "workflows": [getattr(keys, name) + flow for flow in flows for name in _OF_A_WORKFLOW],
    }
    for (kind, named), number, found in zip(many.items(), counts, (logs, lanes, steps, flows), strict=True):
        for key in named:
            yield _Sample(kind, key, number / len(found))
    for name, (unit_ms, kept) in _BY_TIME.items():
        step = max(1, kept // SAMPLED)
        for number in range(now_ms // unit_ms, now_ms // unit_ms - kept, -step):
            yield _Sample("metrics", getattr(keys, name) + b"%d" % number, step)
