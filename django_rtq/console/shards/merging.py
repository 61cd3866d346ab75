"""What several shards say of the same thing, as one value. Numbers are added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from django_rtq.console.inspector.clients.client_list import ClientCounts
from django_rtq.console.inspector.clients.client_states import ClientInQueue
from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.inspector.metrics.reader import ClientDetails, Clients, TaskMetrics
from django_rtq.console.inspector.task_details import TaskDetails, TaskInQueue
from django_rtq.console.shards.all_shards import grouped, joined, merged, merged_details, most, total
from django_rtq.core.conf.queue_options import LIMIT_KINDS, encode_rate
from django_rtq.limits.limits import Limit, Limits


def merged_queues(queues: Iterable[QueueDetails]) -> list[QueueDetails]:
    """Those of one name as one, sorted."""
    return [merged_details(same) for _, same in sorted(grouped("name", queues).items())]


def merged_clients(every: Sequence[Clients], limit: int) -> Clients:
    """The clients of a queue with most waiting jobs."""
    of_all = merged(every, lanes=sum, searched=sum, busy_seconds=sum)
    by_name = grouped("client", joined(clients.clients for clients in every))
    found = [_merged_client(same, of_all.busy_seconds) for same in by_name.values()]
    found.sort(key=lambda client: client.queued, reverse=True)
    return replace(of_all, clients=found[:limit])


def _merged_client(same: Sequence[ClientDetails], of_all_seconds: float) -> ClientDetails:
    client = merged(same, queued=sum, oldest_seconds=most, done_lately=sum, busy_seconds=sum)
    return replace(client, share=min(1.0, client.busy_seconds / of_all_seconds) if of_all_seconds else 0.0)


def merged_dead(by_shard: Mapping[int, Mapping[str, DeadGroups]]) -> dict[str, DeadGroups]:
    """The groups of each queue."""
    groups = merged_groups(
        (number, queue, group)
        for number, of_queues in by_shard.items()
        for queue, part in of_queues.items()
        for group in part.groups
    )
    found: dict[str, DeadGroups] = {}
    for queue in sorted(set().union(*by_shard.values())):
        parts = [of_queues[queue] for of_queues in by_shard.values() if queue in of_queues]
        of_queue = [group for name, group in groups if name == queue]
        found[queue] = replace(merged(parts, searched=sum, total=sum), groups=of_queue)
    return found


def merged_groups(groups: Iterable[tuple[int, str, DeadGroup]]) -> list[tuple[str, DeadGroup]]:
    """Groups of dead letters of shards and queues: those of one queue, task and error are one."""
    found: dict[tuple[str, str, str], DeadGroup] = {}
    for number, queue, of_shard in groups:
        key, group = (queue, of_shard.task, of_shard.error_class), replace(of_shard, shards=(number,))
        found[key] = _both(found[key], group) if key in found else group
    return [(queue, group) for (queue, *_), group in found.items()]


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
        queues=joined(counts.queues for counts in every),
        now_ms=max(counts.now_ms for counts in every),
        read_at=min(counts.read_at for counts in every),
        kept_seconds=max(counts.kept_seconds for counts in every),
    )


def merged_in_queues(by_shard: Mapping[int, Sequence[ClientInQueue]]) -> list[ClientInQueue]:
    """A client in each queue. Its limits are those of the shard that knows it."""
    clients = [
        replace(client, shards=(number,) if client.is_known else ())
        for number, in_queues in by_shard.items()
        for client in in_queues
    ]
    return [_merged_in_queue(same) for same in grouped("queue", clients).values()]


def _merged_in_queue(same: Sequence[ClientInQueue]) -> ClientInQueue:
    home = next((client for client in same if client.is_known), same[0])
    return replace(
        home,
        queued=sum(client.queued for client in same),
        scheduled=sum(client.scheduled for client in same),
        running=total(client.running for client in same),
        oldest_seconds=most(client.oldest_seconds for client in same),
        pause=next((client.pause for client in same if client.pause), None),
        is_blocked=any(client.is_blocked for client in same),
        shards=joined(client.shards for client in same),
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


def merged_metrics(every: Sequence[TaskMetrics]) -> TaskMetrics:
    """The runs of a task."""
    ways = {field.name: sum_of_buckets if field.name in ("runs", "waits") else sum for field in fields(TaskMetrics)}
    return merged(every, **ways)


def sum_of_buckets(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Histograms as one."""
    buckets: Counter[int] = Counter()
    for histogram in histograms:
        buckets.update(histogram)
    return dict(buckets)


def merged_task(by_shard: Mapping[int, TaskDetails]) -> TaskDetails:
    """A task."""
    groups = merged_groups((number, queue, group) for number, task in by_shard.items() for queue, group in task.groups)
    task = merged(
        list(by_shard.values()),
        hours=lambda lists: [merged(same, metrics=merged_metrics) for same in zip(*lists, strict=False)],
        total=merged_metrics,
        runs=sum_of_buckets,
        waits=sum_of_buckets,
        queues=lambda lists: [_in_task(same) for _, same in sorted(grouped("queue.name", joined(lists)).items())],
    )
    return replace(task, groups=sorted(groups, key=lambda pair: pair[1].last_at, reverse=True))


def _in_task(same: Sequence[TaskInQueue]) -> TaskInQueue:
    sums = dict.fromkeys(("queued", "scheduled", "retrying", "running", "dead"), sum)
    return merged(same, queue=merged_details, cut=lambda cuts: frozenset().union(*cuts), **sums)
