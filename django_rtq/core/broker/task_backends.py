"""Which Redis a backend in TASKS uses: RTQ["REDIS"], or that of its OPTIONS (D93); and the places of shards.

A shard is a place like the Redis of a backend: it has a broker and readers of its own. Shard 0 has the name "", as
RTQ["REDIS"] without shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from django_rtq.core.conf.config import (
    Config,
    config_of_backend,
    get_config,
    is_all_in_test_redis,
    is_ours,
    task_backends,
)
from django_rtq.core.extension import required
from django_rtq.core.jobs.job import shard_in
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import ConfigurationError

if TYPE_CHECKING:
    from django_rtq.core.broker.redis.connections import ConnectionSettings

#: The options of a backend that say where its jobs are. One is enough: then the others are those of RTQ.
REDIS_OPTIONS = ("REDIS", "DB", "PREFIX")


class UnknownPlace(ConfigurationError):
    """TASKS has no such backend, or RTQ["SHARDS"] no such shard."""


SHARD = "#"  # and its number: the name of the place of a shard


@cache
def place_of(backend: str) -> str:
    """The name of the Redis of a backend in TASKS: "" is RTQ["REDIS"], others have the first alias that names them.

    Two backends with one server, database and prefix are in one place. Raises ConfigurationError.
    """
    if not backend:
        return ""
    if backend.startswith(SHARD):
        place: str = required("placement").place_of_shard(backend)
        return place
    if backend not in task_backends():
        hint = did_you_mean(backend, task_backends(), quoted=True)
        raise UnknownPlace(f"TASKS has no backend {backend!r}.{hint}")
    if not _own_options(backend) or is_all_in_test_redis():
        return ""
    address = _address(backend)
    if address == _address(""):
        return ""
    return next((alias for alias in _backends_with_redis() if _address(alias) == address), backend)


def named_place(name: str) -> str:
    """The place that somebody means: "#1" is a shard, also "#0"; the alias of a backend without a Redis of its own is
    "", which is all shards. Raises ConfigurationError."""
    return name if name.startswith(SHARD) else place_of(name)


@cache
def shard_place(number: int) -> str:
    """The name of the place of a shard."""
    return f"{SHARD}{number}" if number else ""


def shard_of(place: str) -> int | None:
    """The number of the shard in this place; None: it is none."""
    if place.startswith(SHARD):
        return int(place[1:])
    return 0 if not place and get_config().shards is not None else None


def alias_of(place: str) -> str:
    """The alias of the backend in TASKS that names this place; "" for RTQ["REDIS"] and shards."""
    return "" if place.startswith(SHARD) else place


def shard_numbers() -> range:
    """All shards in RTQ["SHARDS"]; none without it. In tests with one Redis for all there are none."""
    shards = get_config().shards
    return range(0 if shards is None or is_all_in_test_redis() else shards)


def place_of_job(backend: str, job_id: str) -> str:
    """Where a job, or a workflow, of a backend is: the place of the backend, or of the shard that the id names."""
    if get_config().shards is None or backend.startswith(SHARD) or place_of(backend):
        return backend
    number = shard_in(job_id)
    return shard_place(number) if number in shard_numbers() else backend


def shard_places() -> list[str]:
    """The places of all shards; RTQ["REDIS"] alone without them."""
    return [shard_place(number) for number in shard_numbers()] or [""]


def is_in(backend: str, place: str) -> bool:
    """Whether a backend has its jobs in this place. False for one that TASKS does not have any more."""
    return (not backend or backend in task_backends()) and place_of(backend) == place


def places() -> list[str]:
    """All of them, RTQ["REDIS"] or the shards first. Raises ConfigurationError."""
    return list(dict.fromkeys([*shard_places(), *map(place_of, _backends_with_redis())]))


def backends_in(place: str) -> list[str]:
    """The aliases in TASKS whose jobs are in this place. Raises ConfigurationError."""
    return [alias for alias in _our_backends() if place_of(alias) == place]


def queues_in(place: str) -> set[str]:
    """The queues that TASKS names for backends in this place. Raises ConfigurationError."""
    backends = task_backends()
    return {name for alias in backends_in(place) for name in backends[alias]["QUEUES"]}


def config_of(backend: str) -> Config:
    """The settings of the Redis of a backend, of a shard, or of RTQ["REDIS"]. Raises ConfigurationError."""
    return _read(backend)[0] if backend or get_config().shards is not None else get_config()


def connection_settings_of(backend: str) -> ConnectionSettings:
    """How to connect to the Redis of a backend. Opens no connection. Raises ConfigurationError."""
    return _read(backend)[1]


def _read(backend: str) -> tuple[Config, ConnectionSettings]:
    from django_rtq.core.broker.redis.settings import read_connection_settings  # with it comes redis-py

    options, config = _own_options(backend), get_config()
    try:
        if options:
            config = config_of_backend(options)
        elif shard_numbers() and (number := shard_of(backend)) is not None:
            config = required("placement").config_of_shard(number)
        return config, read_connection_settings(config)
    except ConfigurationError as error:
        raise ConfigurationError(in_settings(str(error), backend)) from error


def in_settings(text: str, backend: str) -> str:
    """What is said of RTQ["REDIS"], said of the setting that takes its place for a backend."""
    own = _own_options(backend)
    names = ["PREFIX", *own, *(["DB"] if "REDIS" in own else [])] if own else []  # DB is about REDIS
    for name in dict.fromkeys(names):
        text = text.replace(f'RTQ["{name}"]', f'TASKS[{backend!r}]["OPTIONS"]["{name}"]')
    return text


def _address(backend: str) -> tuple[str, str]:
    config, connection_settings = _read(backend)
    return str(connection_settings), config.prefix


def _our_backends() -> list[str]:
    return [alias for alias, backend in task_backends().items() if is_ours(backend)]


def _backends_with_redis() -> list[str]:
    return [alias for alias in _our_backends() if _own_options(alias)]


def _own_options(backend: str) -> Mapping[str, Any]:
    options = task_backends()[backend]["OPTIONS"] if backend and not backend.startswith(SHARD) else {}
    return {name: options[name] for name in REDIS_OPTIONS if name in options}
