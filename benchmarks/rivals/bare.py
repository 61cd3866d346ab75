"""No queue at all: RPUSH, BLPOP and a call. What one round trip for each step costs; a killed worker loses a job."""

from __future__ import annotations

import json
from collections.abc import Iterable

import redis

from benchmarks.rivals import bodies

client = redis.Redis.from_url(bodies.URL)


def send(task: str, numbers: Iterable[int]) -> list[int]:
    """One RPUSH for each."""
    for number in numbers:
        client.rpush("bare", json.dumps([task, number]))
    return list(numbers)


def fill(task: str, numbers: Iterable[int]) -> None:
    """One RPUSH for all."""
    client.rpush("bare", *[json.dumps([task, number]) for number in numbers])


def get(number: int) -> int:
    """Block until the worker has pushed the result."""
    return int(client.blpop([f"bare:{number}"])[1])  # type: ignore[index]


def work() -> None:
    """Run until terminated."""
    while True:
        task, number = json.loads(client.blpop(["bare"])[1])  # type: ignore[index]
        try:
            result = getattr(bodies, task)(number)
        except ValueError:
            client.rpush("bare", json.dumps([task, number]))
        else:
            if result is not None:
                client.rpush(f"bare:{number}", result)


if __name__ == "__main__":
    work()
