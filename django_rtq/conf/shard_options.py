"""RTQ["SHARDS"]: which shards there are, where they are, and what each of them has of the limits of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django_rtq.conf.queue_options import encode_rate
from django_rtq.exceptions import ConfigurationError

MAX_SHARDS = 1024  # ids have room for the numbers below
_WHOLE = ("max_running", "burst", "max_waiting")  # limits that are divided


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One shard in the settings."""

    number: int
    redis: Any = None  # where it is, as RTQ["REDIS"] says it; None: in a slot of the Cluster in RTQ["REDIS"]
    closed: bool = False  # it gets no new jobs


def check_shards(shards: Any) -> None:
    """Check the value of RTQ["SHARDS"]. Raises ValueError and ConfigurationError."""
    if isinstance(shards, Mapping):
        for number, place in shards.items():
            if not _is_number(number):
                raise ConfigurationError(
                    f'RTQ["SHARDS"] has the shard {number!r}, but shards are whole numbers from 0 to {MAX_SHARDS - 1}.'
                )
            _check_place(number, place)
        if 0 not in shards:
            raise ConfigurationError('RTQ["SHARDS"] has no shard 0, which has all jobs from before there were shards.')
        if all(shard.closed for shard in read_shards(shards).values()):
            raise ConfigurationError('RTQ["SHARDS"]: all shards are closed. New jobs have no place to go.')
    elif isinstance(shards, bool) or not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
        raise ValueError


def _is_number(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < MAX_SHARDS


def _check_place(number: int, place: Any) -> None:
    where = f'RTQ["SHARDS"][{number}]'
    if isinstance(place, Mapping) and "redis" in place:
        if unknown := set(place) - {"redis", "closed"}:
            raise ConfigurationError(f'{where} has an unknown key {min(unknown)!r}. Known are: "redis", "closed".')
        if not isinstance(place.get("closed", False), bool):
            raise ConfigurationError(f'{where}["closed"] is {place["closed"]!r}, but has to be True or False.')
        place = place["redis"]
    if not place or not isinstance(place, str | Mapping):
        raise ConfigurationError(f'{where} names no Redis: write a URL, or another form of RTQ["REDIS"].')


def read_shards(shards: int | Mapping[int, Any]) -> dict[int, Shard]:
    """All shards, by number, in order."""
    if isinstance(shards, int):
        return {number: Shard(number=number) for number in range(shards)}
    found = {}
    for number, place in sorted(shards.items()):
        own = place if isinstance(place, Mapping) and "redis" in place else {"redis": place}
        found[number] = Shard(number=number, redis=own["redis"], closed=own.get("closed", False))
    return found


def with_home(values: dict[str, Any]) -> dict[str, Any]:
    """The options of RTQ with that of shard 0 in place of REDIS. Raises ConfigurationError."""
    shards = values["shards"]
    if isinstance(shards, int):
        return values
    if values.get("redis"):
        raise ConfigurationError(
            'RTQ has "REDIS", and servers in "SHARDS": take "REDIS" out. The server that the project had so far is '
            "shard 0."
        )
    return {**values, "redis": read_shards(shards)[0].redis}


def check_relations(shards: int | Mapping[int, Any], redis: Any, queues: Mapping[str, Mapping[str, Any]]) -> None:
    """Check what other options have to do with shards. Raises ConfigurationError."""
    if isinstance(shards, int) and shards > 1 and not _is_cluster(redis):
        raise ConfigurationError(
            f'RTQ["SHARDS"] is {shards}, a number of slots, but RTQ["REDIS"] is no Cluster. Servers are named: '
            'RTQ["SHARDS"] = {0: "redis://a/0", 1: "redis://b/0"}.'
        )
    count = len(read_shards(shards))
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


def _is_cluster(redis: Any) -> bool:
    if isinstance(redis, Mapping):
        return "cluster" in redis
    return isinstance(redis, str) and redis.startswith(("redis+cluster://", "rediss+cluster://"))


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
