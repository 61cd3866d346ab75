"""The places that have an inspector each, for pages: shards, and the Redis of backends in TASKS."""

from django_rtq.core.broker.task_backends import (
    alias_of,
    place_of_job,
    shard_numbers,
    shard_of,
    shard_place,
    shard_places,
)

__all__ = [
    "alias_of",
    "place_of_job",
    "shard_numbers",
    "shard_of",
    "shard_place",
    "shard_places",
]
