"""What several shards say of the same thing, as one value, where that depends on the shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django_rtq.console.merging import merge, merge_by
from django_rtq.console.reading.clients.client_list import AllClients
from django_rtq.console.reading.clients.client_states import ClientInQueue, QueueState
from django_rtq.console.reading.clients.clients import most_queued
from django_rtq.console.reading.jobs.dead_letters import DeadGroup, DeadGroups
from django_rtq.console.reading.task_details import TaskDetails
from django_rtq.core.conf.config import get_config
from django_rtq.limits.limit_kinds import LIMIT_KINDS, encode_rate
from django_rtq.limits.limits import Limit, Limits


def merged_busiest(by_shard: Mapping[int, Sequence[ClientInQueue]], limit: int) -> list[ClientInQueue]:
    """The clients of a queue with most waiting jobs. A shard without any has run no jobs, either."""
    states = [found[0].queue_state for found in by_shard.values() if found]
    clients = [replace(client, queue_state=merge(states)) for client in _merged_clients(by_shard, "client")]
    return most_queued(clients, limit)


def merged_dead(by_shard: Mapping[int, DeadGroups]) -> DeadGroups:
    """The groups of all shards."""
    return merge(replace(found, groups=_located(number, found.groups)) for number, found in by_shard.items())


def _located(number: int, groups: Sequence[DeadGroup]) -> list[DeadGroup]:
    return [replace(group, shards=(number,)) for group in groups]


def merged_counts(by_shard: Mapping[int, AllClients]) -> AllClients:
    """The clients of all queues of all shards: each figure is a sum over queues."""
    for number, counts in by_shard.items():
        for queue in counts.queues:
            queue.shard = number
    return merge(by_shard.values())


def merged_in_queues(by_shard: Mapping[int, Sequence[ClientInQueue]]) -> list[ClientInQueue]:
    """A client in each queue."""
    return _merged_clients(by_shard, "queue")


def _merged_clients(by_shard: Mapping[int, Sequence[ClientInQueue]], name: str) -> list[ClientInQueue]:
    """Those with the same attribute as one. Its limits are those of the shard that knows it."""
    clients = [
        replace(client, shards=(number,) if client.is_known else ())
        for number, in_queues in by_shard.items()
        for client in in_queues
    ]
    return merge_by(name, sorted(clients, key=lambda client: not client.is_known))


def merged_in_queue(
    queue: str, by_shard: Mapping[int, tuple[QueueState, Sequence[ClientInQueue]]]
) -> tuple[QueueState, list[ClientInQueue]]:
    """A queue, and some of its clients."""
    states = [state for state, _ in by_shard.values()]
    whole = replace(merge(states), limits=merged_limits(queue, [state.limits for state in states]))
    return whole, _merged_clients({number: clients for number, (_, clients) in by_shard.items()}, "client")


def merged_limits(queue: str, every: Sequence[Limits]) -> Limits:
    """The limits of a queue, of which each shard has a part, unless the queue as a whole is in one shard."""
    if get_config().queue(queue).shards:
        return every[0]
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


def merged_task(by_shard: Mapping[int, TaskDetails]) -> TaskDetails:
    """A task."""
    return merge(replace(task, groups=_located(number, task.groups)) for number, task in by_shard.items())
