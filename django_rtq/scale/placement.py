"""Where jobs of a project with RTQ["SHARDS"] go (D146), and what each shard has of its own.

A shard holds all queues, for a part of the clients: what one script does with queues, turns and limits stays one
script. An id names the shard of its job for ever, so nothing is looked up.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from django_rtq.core.broker.brokers import on_brokers_forgotten
from django_rtq.core.broker.task_backends import (
    SHARD,
    UnknownPlace,
    place_of,
    shard_numbers,
    shard_of,
    shard_place,
)
from django_rtq.core.conf.config import Config, get_config, is_all_in_test_redis
from django_rtq.core.jobs.job import new_job_id, shard_in, with_shard
from django_rtq.exceptions import ConfigurationError
from django_rtq.limits.limit_kinds import encode_rate

NewId = Callable[..., str]  # of the client of a job, and the digest of a unique one
SLOTS = 16_384  # of a Cluster
_WHOLE = ("max_running", "burst", "max_waiting")  # limits that are divided


def new_ids(backend: str, queue: str) -> NewId | None:
    """What makes ids that name the shards of jobs. None: no shards, or the backend has a Redis of its own."""
    pinned = int(backend[1:]) if backend.startswith(SHARD) and shard_numbers() else None
    if pinned is None and not has_shards(backend):
        return None
    return _new_ids(queue, pinned)


@lru_cache(maxsize=1000)
def _new_ids(queue: str, pinned: int | None) -> NewId:
    numbers = shard_numbers()

    def new_id(client: str, digest: str = "") -> str:
        shard = shard_of_client(queue, client) if pinned is None else pinned
        if shard is not None:
            return new_job_id(shard)
        job_id = new_job_id()
        any_shard = int(job_id[-8:], 16) % len(numbers)
        return with_shard(job_id, shard_for(f"digest {digest}", numbers) if digest else any_shard)

    return new_id


def has_shards(backend: str) -> bool:
    """Whether jobs of this backend go to shards: the backend has no Redis of its own."""
    return bool(shard_numbers()) and not (backend and place_of(backend))


def new_workflow_home(client: str, key: str) -> int:
    """The shard of a new workflow: of its client, else of its key, else any."""
    numbers = shard_numbers()
    return shard_for(f"client {client}" if client else f"workflow {key or new_job_id()}", numbers) if numbers else 0


def check_together(job_ids: Iterable[str]) -> None:
    """Raises ValueError if jobs that are to be stored together are in several shards."""
    if len(shards := set(map(shard_in, job_ids))) > 1:
        raise ValueError(
            f"delay_many(all_or_none=True) cannot store these jobs together: they belong to {len(shards)} shards, "
            "which no script reaches at once. Call it once for each client: a client is in one shard."
        )


@lru_cache(maxsize=20_000)
def shard_of_client(queue: str, client: str) -> int | None:
    """Of the queue, if it is in one, else of the client; None without a client."""
    numbers = shard_numbers()
    pinned = shard_of_queue(queue, numbers)
    return shard_for(f"client {client}", numbers) if pinned is None and client else pinned


on_brokers_forgotten += [_new_ids.cache_clear, shard_of_client.cache_clear]  # with the settings


def shard_of_queue(queue: str, numbers: Sequence[int]) -> int | None:
    """The shard of a queue that is in one as a whole ("shards": 1); None: its clients are spread."""
    options = get_config().queues.get(queue)
    return shard_for(f"queue {queue}", numbers) if options and options.get("shards") else None


def shard_of_schedule(queue: str, client: str, name: str) -> int:
    """Of the queue, if it is in one, else of the client, else of the name of the schedule."""
    shard = shard_of_client(queue, client)
    return shard_for(f"schedule {name}", shard_numbers()) if shard is None else shard


def is_elsewhere(queue: str, place: str) -> bool:
    """Whether a queue as a whole is in another shard than this place."""
    numbers = shard_numbers()
    pinned = None if not numbers or shard_of(place) is None else shard_of_queue(queue, numbers)
    return pinned is not None and pinned != shard_of(place)


def shard_for(name: str, numbers: Sequence[int]) -> int:
    """The shard of a name by rendezvous hashing: it changes for one name in n when shard n is added.

    Never change it: it would misplace jobs.
    """
    return max(numbers, key=lambda number: blake2b(f"{number} {name}".encode(), digest_size=8).digest())


def pinned_in(place: str) -> str:
    """The backend of jobs that have to be in this place, whatever their client."""
    number = shard_of(place)
    return place if number is None else f"{SHARD}{number}"


def config_of_shard(number: int) -> Config:
    """The settings with the place of a shard, and its share of the limits of queues."""
    config = get_config()
    assert config.shards is not None
    queues = share_of(config.queues, number, config.shards)
    if not number:
        return replace(config, queues=queues)
    return replace(config, queues=queues, prefix=tag_of_shard(config.prefix, number, config.shards))


def place_of_shard(name: str) -> str:
    """The place of a shard, by a name of pinned_in(). Raises UnknownPlace."""
    numbers = shard_numbers()
    if is_all_in_test_redis() or name == SHARD + "0":
        return ""
    if name not in map(shard_place, numbers):
        known = ", ".join(map(str, numbers)) or "none"
        raise UnknownPlace(f'There is no shard {name[1:]} in RTQ["SHARDS"]. There are: {known}.')
    return name


# -- limits and slots of shards


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
    return {**limits, **divided(given, shard_of(place) or 0, len(numbers))}


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
