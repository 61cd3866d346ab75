"""The brokers of this process: one for each Redis, made when it is first needed.

A Broker is imported then, too, and redis-py with it: most web processes and commands of a project send no job.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from django.core.signals import setting_changed
from django.dispatch import receiver

from django_rtq.core.broker.task_backends import config_of, place_of, shard_numbers
from django_rtq.core.conf.config import mode_of_tests
from django_rtq.core.extension import required

if TYPE_CHECKING:
    from django_rtq.core.broker.broker import Broker
    from django_rtq.core.broker.worker_broker import WorkerBroker

_brokers: dict[str, Broker] = {}  # of get_broker(), by the name of their Redis
_substitutes: list[Broker | None] = []
on_brokers_forgotten: list[Callable[[], object]] = []  # caches of what has a broker


@cache
def get_broker(backend: str = "") -> Broker:
    """The broker of this process for a backend in TASKS; "": for RTQ["REDIS"].

    For producers and the admin. Backends with the same Redis share one. Raises ConfigurationError.
    """
    if _substitutes:
        if _substitutes[-1] is not None:
            return _substitutes[-1]
    elif mode := mode_of_tests():
        found: Broker = required("broker_in_tests")(mode)
        return found
    place = place_of(backend)
    return _brokers.get(place) or _brokers.setdefault(place, _producers_broker(place))


def open_broker(backend: str, *, role: str) -> WorkerBroker:
    """A broker of its own, for workers and schedulers. Raises ConfigurationError."""
    from django_rtq.core.broker.worker_broker import WorkerBroker  # producers do not need it

    place = place_of(backend)
    return WorkerBroker(config_of(place), role=role, backend=place)


def _producers_broker(place: str) -> Broker:
    """The broker of a place: with shards it finds that of each job."""
    from django_rtq.core.broker.broker import Broker  # with it comes redis-py

    if place or not shard_numbers():
        return Broker(config_of(place), backend=place)
    made: Broker = required("shards_broker")(config_of(place))
    return made


def forget_brokers(places: Collection[str] | None = None) -> None:
    """Let get_broker() make new ones. None: for all places."""
    for place in list(_brokers) if places is None else places:
        del _brokers[place]
    _clear_caches()


def _clear_caches() -> None:
    get_broker.cache_clear()
    for clear in on_brokers_forgotten:
        clear()


def close_brokers(places: Collection[str] | None = None) -> None:
    """Close the connections of the brokers of get_broker(). None: of all places."""
    for place in list(_brokers) if places is None else places:
        _brokers[place].close()


@contextmanager
def substitute_broker(broker: Broker | None) -> Iterator[None]:
    """For tests: get_broker() returns this one inside the block, in all threads, for all backends.

    None: that of the settings, inside of a block with another one.
    """
    _substitutes.append(broker)
    _clear_caches()
    try:
        yield
    finally:
        _substitutes.remove(broker)
        _clear_caches()


# A process may be forked while another thread holds the lock of the pool: the child makes its own broker.
os.register_at_fork(after_in_child=forget_brokers)


@receiver(setting_changed)
def apply_settings(*, setting: str, **kwargs: object) -> None:
    """Make new brokers when a test overrides the settings, and leave no connections of the others."""
    if setting not in ("RTQ", "CACHES", "DEBUG", "TASKS"):
        return
    place_of.cache_clear()
    gone = _brokers.keys() - ({""} if setting == "TASKS" else set())
    close_brokers(gone)
    forget_brokers(gone)
