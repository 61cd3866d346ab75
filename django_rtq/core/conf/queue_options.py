"""The names of queues, and their options in RTQ["QUEUES"]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeGuard

from django_rtq.core.conf.option import FLAG, Kind, accepts, check_options, number, one_of, option, options_of
from django_rtq.core.extension import required
from django_rtq.exceptions import ConfigurationError, InvalidTask

_QUEUE_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def is_queue_name(value: object) -> TypeGuard[str]:
    """Whether a queue may have this name: it becomes a part of keys in Redis."""
    return isinstance(value, str) and _QUEUE_NAME.fullmatch(value) is not None


QUEUE_NAME = accepts(is_queue_name, "1 to 100 of the letters A-Z and a-z, digits, '.', '_' and '-'")


def check_queue_name(name: object) -> None:
    """Raises InvalidTask for what is_queue_name() refuses."""
    if not is_queue_name(name):
        raise InvalidTask(f"{name!r} is not a queue name: use {QUEUE_NAME.says}.")


_LIMITS = ("max_running", "rate", "burst", "max_waiting")
QUEUE_LIMITS = (*_LIMITS, "fair_by")  # what a queue may have
CLIENT_LIMITS = (*_LIMITS, "weight")  # what a client may have


def _limit_kind(name: str) -> Kind:
    """The values of a limit, which an app knows: it is loaded where there is one."""

    def read(value: Any) -> Any:
        required("limit_kinds")[name].text(value)
        return value

    return Kind("", read)


_CLIENT_KINDS = {name: _limit_kind(name) for name in CLIENT_LIMITS}


def check_client_limits(where: str, limits: Any) -> None:
    """Raises ConfigurationError for limits that a client cannot have. `where` names them."""
    check_options(where, limits, _CLIENT_KINDS, like='{"max_running": 2}', noun="limit")


def _limit(name: str, default: Any = None) -> Any:
    return option(default, _limit_kind(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """The options of one queue in RTQ["QUEUES"]."""

    #: Delayed jobs that have become due go ahead of the others of their priority.
    delayed_first: bool = option(False, FLAG)
    #: How many of its jobs may run at once, on all machines together. None: any number.
    max_running: int | None = _limit("max_running")
    #: How many of its jobs may start in a time: "100/s", "500/m", "3/h", or (500, timedelta(minutes=1)).
    rate: str | tuple[int, timedelta] | None = _limit("rate")
    #: How many of them may start at once. None: as many as in a tenth of a second, at least 1.
    burst: int | None = _limit("burst")
    #: How many of its jobs may wait, for a worker or for their time. None: any number.
    max_waiting: int | None = _limit("max_waiting")
    #: 1: the queue as a whole is in one shard, so that its limits are exact. None: its clients are spread over all.
    shards: int | None = option(
        None, Kind("1: the queue as a whole is in one shard", number(least=1, most=1, whole=True, or_none=True).read)
    )
    #: What delay() does with a job that does not fit: "raise" QueueFull, or "wait" for room first.
    on_full: str = option("raise", one_of("raise", "wait"))
    #: For how many seconds it waits.
    on_full_timeout: float = option(5.0, number("a number of seconds", above=0, most=3600))
    #: Whether clients get equal numbers of starts, "jobs", or equal times of workers, "seconds".
    fair_by: str = _limit("fair_by", "jobs")
    #: Limits of each client: {"max_running": 2}.
    client: Mapping[str, Any] = option({})
    #: Limits of single clients: name -> the same.
    clients: Mapping[str, Mapping[str, Any]] = option({})

    @property
    def limits(self) -> dict[str, Any]:
        """The limits of the queue itself, by name."""
        return {name: value for name in QUEUE_LIMITS if (value := getattr(self, name)) not in (None, "jobs")}

    @property
    def has_limits(self) -> bool:
        """Whether the settings have any for the queue or its clients."""
        return bool(self.limits or self.client or any(self.clients.values()))


_OPTIONS = {name: declared.kind for name, declared in options_of(QueueConfig).items()}


def check_queues(queues: Any) -> None:
    """Check the value of RTQ["QUEUES"]. Raises ConfigurationError, and ValueError for what is no dictionary."""
    if not isinstance(queues, Mapping):
        raise ValueError
    for name, options in queues.items():
        where = f'RTQ["QUEUES"][{name!r}]'
        if not is_queue_name(name):
            raise ConfigurationError(f"{where}: {name!r} is not the name of a queue.")
        check_options(where, options, _OPTIONS, like='{"delayed_first": True}')
        if "on_full_timeout" in options and options.get("on_full") != "wait":
            raise ConfigurationError(f"{where} has 'on_full_timeout', which needs 'on_full': \"wait\".")
        if "client" in options:
            check_client_limits(f"{where}['client']", options["client"])
        clients = options.get("clients", {})
        if not isinstance(clients, Mapping) or not all(isinstance(client, str) for client in clients):
            raise ConfigurationError(
                f'{where}[\'clients\'] has to be a dictionary of clients, like {{"acme": {{"max_running": 5}}}}.'
            )
        for client, limits in clients.items():
            check_client_limits(f"{where}['clients'][{client!r}]", limits)
