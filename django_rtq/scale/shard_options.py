"""What each of RTQ["SHARDS"] shards has of its own: a slot of a Cluster, and its part of the limits of queues."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django_rtq.core.broker.task_backends import shard_numbers, shard_of
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import ConfigurationError
from django_rtq.limits.limit_kinds import encode_rate

SLOTS = 16_384  # of a Cluster
_WHOLE = ("max_running", "burst", "max_waiting")  # limits that are divided


def check_limits(count: int, queues: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises ConfigurationError if a limit of a queue cannot be divided among so many shards."""
    for queue, options in queues.items():
        if (name := undividable(options, count)) is not None:
            raise ConfigurationError(
                f'RTQ["QUEUES"][{queue!r}][{name!r}] is {options[name]}, which cannot be divided among {count} shards. '
                'Raise it, keep the whole queue in one shard with "shards": 1, or limit clients: a client is in one '
                "shard."
            )


def undividable(options: Mapping[str, Any], count: int) -> str | None:
    """The limit in the options of a queue that is smaller than the number of shards; None: there is none."""
    if options.get("shards"):
        return None
    return next((name for name in _WHOLE if 0 < (options.get(name) or 0) < count), None)


def share_of(queues: Mapping[str, Mapping[str, Any]], at: int, count: int) -> dict[str, dict[str, Any]]:
    """What one of `count` shards has of RTQ["QUEUES"]: of each limit of a queue a part, if it is in all shards."""
    return {
        name: dict(options) if options.get("shards") else divided(options, at, count)
        for name, options in queues.items()
    }


def divided(options: Mapping[str, Any], at: int, count: int) -> dict[str, Any]:
    """The share of one shard: together they have no more than the whole."""
    share = dict(options)
    for name in _WHOLE:
        if options.get(name):
            share[name] = options[name] // count + (at < options[name] % count)
    if options.get("rate"):
        starts, period_ms = map(int, encode_rate(options["rate"]).split("/"))
        share["rate"] = (starts, timedelta(milliseconds=period_ms * count))
    return share


def share_of_queue(queue: str, limits: Mapping[str, Any], place: str) -> dict[str, Any]:
    """What one of several shards gets of limits of a whole queue, as of those in the settings. Raises ValueError."""
    numbers, config = shard_numbers(), get_config()
    if len(numbers) < 2 or config.queue(queue).shards:
        return dict(limits)
    given = {name: value for name, value in limits.items() if value not in (None, "settings")}
    if (name := undividable(given, len(numbers))) is not None:
        raise ValueError(
            f"{name} {limits[name]} cannot be divided among {len(numbers)} shards. Raise it, keep the queue in one "
            f'shard with RTQ["QUEUES"][{queue!r}] = {{"shards": 1}}, or limit clients.'
        )
    return {**limits, **divided(given, numbers.index(shard_of(place) or 0), len(numbers))}


def tag_of_shard(prefix: str, number: int, count: int) -> str:
    """cluster_tag() of one of several shards. Each of the `count` equal parts of all slots has one of theirs.

    Shard 0 has the tag of a project without shards; the next ones have slots in the parts behind its own, in turn.
    The second number in a tag is the first one for which that is so.
    """

    def part_of(number: int, salt: int) -> int:
        # HASH_SLOT of the Redis Cluster specification, CRC-16/XMODEM. Its twin in redis-py would load all of that.
        slot = crc_hqx(f"{prefix}.{number}.{salt}".encode(), 0) % SLOTS
        return slot * count // SLOTS

    part = (part_of(0, 0) + number) % count
    for salt in range(SLOTS * 64):
        if part_of(number, salt) == part:
            return f"{{{prefix}.{number}.{salt}}}"
    raise AssertionError(f"no name of shard {number} lies in its slots")
