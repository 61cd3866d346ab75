"""Limits of clients from a function of the project: RTQ["QUEUES"]["mail"]["limits_of"] = "shop.tenants.limits".

1. a producer meets a client: it enqueues a job for it, and does not remember that its limits are known
2. Redis says whether another process has asked in the last minute: then there is nothing to do
3. the function is called, its answer checked and stored
4. the process remembers the client for that minute

Claims know nothing of it. Whatever fails here is logged, and what was known before goes on to hold.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed
from django.db import connections, transaction
from django.dispatch import receiver
from django.utils.module_loading import import_string

from django_rtq.broker.messages import NewJob, UniqueJob
from django_rtq.conf.config import Config, get_config
from django_rtq.conf.queue_options import check_client_limits
from django_rtq.exceptions import BrokerError, ConfigurationError

if TYPE_CHECKING:
    from django_rtq.broker.broker import Broker

logger = logging.getLogger("django_rtq")

RETRY_SECONDS = 5.0  # after an error of Redis
LOG_SECONDS = 60.0  # between two log lines about one function
MOST_REMEMBERED = 50_000  # clients; about 10 MB

_known_until: dict[tuple[str, str, str], float] = {}  # backend, queue and client -> on the monotonic clock
_logged_at: dict[str, float] = {}  # function -> the same


@lru_cache(maxsize=1)
def limit_functions() -> Mapping[str, str]:
    """The dotted paths of the functions, by queue."""
    queues = get_config().queues
    return {name: path for name, options in queues.items() if (path := options.get("limits_of"))}


def meet_clients(broker: Broker, queue: str, jobs: Iterable[NewJob | UniqueJob]) -> None:
    """See that the limits of the clients of these jobs are known. Raises nothing."""
    if unknown := _unknown(broker, queue, jobs):
        _learn(broker, queue, unknown)


async def ameet_clients(broker: Broker, queue: str, jobs: Iterable[NewJob | UniqueJob]) -> None:
    """meet_clients() for coroutines: the function is called in the thread in which async code runs queries."""
    if unknown := _unknown(broker, queue, jobs):
        await sync_to_async(_learn, thread_sensitive=True)(broker, queue, unknown)


def _unknown(broker: Broker, queue: str, jobs: Iterable[NewJob | UniqueJob]) -> list[str]:
    """Jobs without a client have no limits of their own."""
    now, place = time.monotonic(), (broker.backend, queue)
    return list({job.client: 0 for job in jobs if job.client and _known_until.get((*place, job.client), 0.0) <= now})


def _learn(broker: Broker, queue: str, clients: Sequence[str]) -> None:
    if not broker.has_limits:
        return
    from django_rtq.broker.limits import ASKED_MS  # without such a function nobody needs them

    _remember(broker, queue, dict.fromkeys(clients, ASKED_MS / 1000))  # no other thread asks meanwhile
    try:
        left = dict(zip(clients, broker.limits.seconds_left(queue, clients), strict=True))
        _remember(broker, queue, {client: seconds for client, seconds in left.items() if seconds})
        path = limit_functions()[queue]
        said = {client: _ask(path, client) for client, seconds in left.items() if not seconds}
        broker.limits.keep(queue, {client: limits for client, limits in said.items() if limits is not None})
    except BrokerError:  # who enqueues meets it, too
        _remember(broker, queue, dict.fromkeys(clients, RETRY_SECONDS))


def _remember(broker: Broker, queue: str, clients: Mapping[str, float]) -> None:
    now = time.monotonic()
    if len(_known_until) + len(clients) > MOST_REMEMBERED:
        for known in [known for known, until in list(_known_until.items()) if until <= now]:
            _known_until.pop(known, None)
    if len(_known_until) + len(clients) > MOST_REMEMBERED:
        _known_until.clear()
    _known_until.update({(broker.backend, queue, client): now + seconds for client, seconds in clients.items()})


def _ask(path: str, client: str) -> Mapping[str, Any] | None:
    """The limits of a client; {} if it has none, None if the function failed."""
    try:
        with _savepoints():
            limits = load_function(path)(client)
        if limits is not None:
            check_client_limits(f"{path}({client!r})", limits)
        return dict(limits or {})
    except Exception as error:
        now = time.monotonic()
        if now - _logged_at.get(path, -LOG_SECONDS) >= LOG_SECONDS:
            _logged_at[path] = now
            is_answer = isinstance(error, ConfigurationError)
            text = "limits_of failed, the limits that were known of client %r still hold: %s"
            problem = error if is_answer else f"{path}() raised {type(error).__name__}"
            logger.error(text, client, problem, exc_info=None if is_answer else error)
        return None


@contextmanager
def _savepoints() -> Iterator[None]:
    """Keep open transactions usable if a query fails inside."""
    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                stack.enter_context(transaction.atomic(using=connection.alias))
        yield


@lru_cache(maxsize=100)
def load_function(path: str) -> Callable[[str], Any]:
    """The function of a dotted path. Raises ConfigurationError."""
    try:
        found = import_string(path)
    except Exception as error:
        raise ConfigurationError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise ConfigurationError(f"{path} is {found!r}, but has to be a function, and not an async one.")
    function: Callable[[str], Any] = found
    return function


def check_functions(config: Config) -> Iterator[str]:
    """What is wrong with functions of the settings. Calls none."""
    for name, options in config.queues.items():
        try:
            _ = load_function(options["limits_of"]) if options.get("limits_of") else None
        except ConfigurationError as error:
            yield f'RTQ["QUEUES"][{name!r}]["limits_of"]: {error}'


@receiver(setting_changed)
def forget_clients(*, setting: str, **kwargs: object) -> None:
    """Ask again when a test overrides the settings."""
    if setting == "RTQ":
        limit_functions.cache_clear()
        _known_until.clear()
        _logged_at.clear()
