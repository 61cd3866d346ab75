"""Moves the times of delayed jobs and retries in Redis, for drain(until=…)."""

from __future__ import annotations

from collections.abc import Sequence

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.client import clock_ms
from django_rtq.broker.redis.commands import Command
from django_rtq.jobs.job import held_since


def server_ms(broker: Broker) -> int:
    """The time of the server."""
    return clock_ms(broker.redis.execute_one(("TIME",)))


def due_times(broker: Broker, queues: Sequence[str]) -> dict[str, int]:
    """In how many ms each delayed job and retry is due, 0 or less if it is. Without those of paused tasks."""
    now_ms = server_ms(broker)
    reads: list[Command] = [("ZRANGE", broker.keys.of(queue).scheduled, 0, -1, "WITHSCORES") for queue in queues]
    return {
        job_id.decode(): int(float(due)) - now_ms
        for reply in broker.redis.execute(reads)
        for job_id, due in zip(reply[::2], reply[1::2], strict=True)
        if held_since(float(due)) is None
    }


def bring_forward(broker: Broker, queues: Sequence[str], ms: int) -> None:
    """Make all delayed jobs and retries due earlier, as if so much time had passed."""
    for queue in queues:
        keys = broker.keys.of(queue)
        index = keys.scheduled_by_client
        clients = broker.redis.execute_one(("ZRANGE", index, 0, -1))
        names = [keys.scheduled, keys.retrying, index, *(index + b":" + client for client in clients)]
        members = broker.redis.execute([("ZRANGE", name, 0, -1, "WITHSCORES") for name in names])
        moves: list[Command] = [
            ("ZINCRBY", name, -ms, member)
            for name, found in zip(names, members, strict=True)
            for member, due in zip(found[::2], found[1::2], strict=True)
            if held_since(float(due)) is None
        ]
        if moves:
            broker.redis.execute(moves)
