"""What each of RTQ["SHARDS"] shards has of the limits of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django_rtq.core.conf.queue_options import encode_rate
from django_rtq.exceptions import ConfigurationError

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
