"""What several shards say of the same thing, as one value. Numbers are added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain

from django_rtq.console.inspector.clients.client_list import ClientCounts
from django_rtq.console.inspector.clients.client_states import ClientInQueue
from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.inspector.metrics.reader import ClientDetails, Clients, TaskMetrics
from django_rtq.console.inspector.task_details import TaskDetails, TaskHour, TaskInQueue
from django_rtq.console.shards.all_shards import merged_details, most
from django_rtq.core.conf.queue_options import LIMIT_KINDS, encode_rate
from django_rtq.limits.limits import Limit, Limits


def merged_queues(queues: Iterable[QueueDetails]) -> list[QueueDetails]:
    """Those of one name as one, sorted."""
    by_name: dict[str, list[QueueDetails]] = {}
    for queue in queues:
        by_name.setdefault(queue.name, []).append(queue)
    return [merged_details(by_name[name]) for name in sorted(by_name)]


def merged_clients(every: Sequence[Clients], limit: int) -> Clients:
    """The clients of a queue with most waiting jobs."""
    busy_seconds = sum(clients.busy_seconds for clients in every)
    by_name: dict[str, list[ClientDetails]] = {}
    for client in chain.from_iterable(clients.clients for clients in every):
        by_name.setdefault(client.client, []).append(client)
    merged = [_merged_client(same, busy_seconds) for same in by_name.values()]
    merged.sort(key=lambda client: client.queued, reverse=True)
    return Clients(
        clients=merged[:limit],
        lanes=sum(clients.lanes for clients in every),
        searched=sum(clients.searched for clients in every),
        busy_seconds=busy_seconds,
    )


def _merged_client(same: Sequence[ClientDetails], of_all_seconds: float) -> ClientDetails:
    busy_seconds = sum(client.busy_seconds for client in same)
    return ClientDetails(
        client=same[0].client,
        queued=sum(client.queued for client in same),
        oldest_seconds=most(client.oldest_seconds for client in same),
        done_lately=sum(client.done_lately for client in same),
        busy_seconds=busy_seconds,
        share=min(1.0, busy_seconds / of_all_seconds) if of_all_seconds else 0.0,
    )


def merged_dead(by_shard: Mapping[int, Mapping[str, DeadGroups]]) -> dict[str, DeadGroups]:
    """The groups of each queue."""
    groups = merged_groups(
        (number, queue, group)
        for number, of_queues in by_shard.items()
        for queue, of_queue in of_queues.items()
        for group in of_queue.groups
    )
    merged: dict[str, DeadGroups] = {}
    for queue in sorted(set().union(*by_shard.values())):
        parts = [of_queues[queue] for of_queues in by_shard.values() if queue in of_queues]
        merged[queue] = DeadGroups(
            groups=[group for name, group in groups if name == queue],
            searched=sum(part.searched for part in parts),
            total=sum(part.total for part in parts),
        )
    return merged


def merged_groups(groups: Iterable[tuple[int, str, DeadGroup]]) -> list[tuple[str, DeadGroup]]:
    """Groups of dead letters of shards and queues: those of one queue, task and error are one."""
    merged: dict[tuple[str, str, str], DeadGroup] = {}
    for number, queue, of_shard in groups:
        key, group = (queue, of_shard.task, of_shard.error_class), replace(of_shard, shards=(number,))
        merged[key] = _both(merged[key], group) if key in merged else group
    return [(queue, group) for (queue, *_), group in merged.items()]


def _both(one: DeadGroup, other: DeadGroup) -> DeadGroup:
    """The newest dead letter is that of both."""
    newer, older = (one, other) if one.last_at >= other.last_at else (other, one)
    first_at = min(newer.first_at, older.first_at)
    return replace(newer, count=newer.count + older.count, first_at=first_at, shards=(*newer.shards, *older.shards))


def merged_counts(by_shard: Mapping[int, ClientCounts]) -> ClientCounts:
    """The clients of all queues of all shards: each figure is a sum over queues."""
    every = list(by_shard.values())
    for number, counts in by_shard.items():
        for queue in counts.queues:
            queue.shard = number
    return ClientCounts(
        queues=[queue for counts in every for queue in counts.queues],
        now_ms=max(counts.now_ms for counts in every),
        read_at=min(counts.read_at for counts in every),
        kept_seconds=max(counts.kept_seconds for counts in every),
    )


def merged_in_queues(by_shard: Mapping[int, Sequence[ClientInQueue]]) -> list[ClientInQueue]:
    """A client in each queue. Its limits are those of the shard that knows it."""
    by_queue: dict[str, list[ClientInQueue]] = {}
    for number, in_queues in by_shard.items():
        for client in in_queues:
            by_queue.setdefault(client.queue, []).append(replace(client, shards=(number,) if client.is_known else ()))
    return [_merged_in_queue(same) for same in by_queue.values()]


def _merged_in_queue(same: Sequence[ClientInQueue]) -> ClientInQueue:
    home = next((client for client in same if client.is_known), same[0])
    running = [client.running for client in same if client.running is not None]
    return replace(
        home,
        queued=sum(client.queued for client in same),
        scheduled=sum(client.scheduled for client in same),
        running=sum(running) if running else None,
        oldest_seconds=most(client.oldest_seconds for client in same),
        pause=next((client.pause for client in same if client.pause), None),
        is_blocked=any(client.is_blocked for client in same),
        shards=[number for client in same for number in client.shards],
    )


def merged_limits(every: Sequence[Limits]) -> Limits:
    """The limits of a queue, of which each shard has a part."""
    return {name: _whole([limits[name] for limits in every if name in limits]) for name in every[0]}


def _whole(parts: Sequence[Limit]) -> Limit:
    values, name_value = [part.value for part in parts], parts[0].value
    if None in values or len(parts) == 1 or name_value in ("jobs", "seconds"):
        return parts[0]
    if isinstance(name_value, int):
        return replace(parts[0], value=sum(values))
    rates = [tuple(map(int, encode_rate(value).split("/"))) for value in values]
    starts, per_ms = rates[0][0], sum(number / period_ms for number, period_ms in rates)
    return replace(parts[0], value=LIMIT_KINDS["rate"].decode(f"{starts}/{round(starts / per_ms)}"))


def merged_metrics(every: Iterable[TaskMetrics]) -> TaskMetrics:
    """The runs of a task."""
    all_metrics, sums = list(every), dict[str, object]()
    for name in (field.name for field in fields(TaskMetrics)):
        values = [getattr(metrics, name) for metrics in all_metrics]
        sums[name] = sum_of_buckets(values) if name in ("runs", "waits") else sum(values)
    return TaskMetrics(**sums)  # type: ignore[arg-type]


def sum_of_buckets(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Histograms as one."""
    buckets: Counter[int] = Counter()
    for histogram in histograms:
        buckets.update(histogram)
    return dict(buckets)


def merged_task(by_shard: Mapping[int, TaskDetails]) -> TaskDetails:
    """A task."""
    every = list(by_shard.values())
    queues: dict[str, list[TaskInQueue]] = {}
    for in_queue in chain.from_iterable(task.queues for task in every):
        queues.setdefault(in_queue.queue.name, []).append(in_queue)
    groups = merged_groups((number, queue, group) for number, task in by_shard.items() for queue, group in task.groups)
    return replace(
        every[0],
        hours=_merged_hours([task.hours for task in every]),
        total=merged_metrics(task.total for task in every),
        runs=sum_of_buckets(task.runs for task in every),
        waits=sum_of_buckets(task.waits for task in every),
        queues=[_merged_in_task(queues[name]) for name in sorted(queues)],
        groups=sorted(groups, key=lambda pair: pair[1].last_at, reverse=True),
    )


def _merged_hours(every: Sequence[Sequence[TaskHour]]) -> list[TaskHour]:
    return [
        replace(same[0], metrics=merged_metrics(hour.metrics for hour in same)) for same in zip(*every, strict=False)
    ]


def _merged_in_task(same: Sequence[TaskInQueue]) -> TaskInQueue:
    names = ("queued", "scheduled", "retrying", "running", "dead")
    return TaskInQueue(
        queue=merged_details([in_queue.queue for in_queue in same]),
        cut=frozenset().union(*(in_queue.cut for in_queue in same)),
        **{name: sum(getattr(in_queue, name) for in_queue in same) for name in names},
    )
