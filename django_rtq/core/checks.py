"""All system checks: settings and schedules; with --deploy also the Redis server and the databases.

What brings redis-py along is imported where it is needed: most checks need no server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.core.cache import caches
from django.core.checks import ERROR, CheckMessage, Error, Warning
from django.db import connections

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.task_backends import connection_settings_of, places, shard_of, shard_places
from django_rtq.core.conf.config import Config, get_config, is_ours, task_backends
from django_rtq.core.extension import parts
from django_rtq.core.scheduler.registry import declared_schedules
from django_rtq.core.tasks.calls import client_name
from django_rtq.core.tasks.registry import all_tasks
from django_rtq.core.transactions import named_database, written_database
from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable, ConfigurationError, InvalidTask

_PLAIN_URL = re.compile(r"redis://[a-z0-9.-]+(:[1-5]?\d{1,4})?(/\d{1,3})?")
_DJANGOS_CACHES = "django.core.cache.backends."
_NO_ENGINE = "django.db.backends.dummy"  # what Django makes of {}


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """rtq.E001: RTQ, or the alias or factory that it names, is invalid. rtq.E003: a cache shares the database.

    rtq.W001: the lease is very short.
    """
    try:
        config = get_config()
        for queue, options in config.queues.items():
            for client in options.get("clients", ()):
                client_name(f"RTQ[\"QUEUES\"][{queue!r}]['clients']: a name", client)
        places = [] if _is_plain(config) else [connection_settings_of(place) for place in shard_places()]
    except (ConfigurationError, InvalidTask) as error:
        return [Error(str(error), id="rtq.E001")]
    if places:
        from django_rtq.core.broker.redis.clients_of_project import caches_in

        for where, alias in ((place, alias) for place in places for alias in caches_in(place)):
            return [
                Error(
                    f"The queues are in {where}, which the cache {alias!r} uses too. cache.clear() runs FLUSHDB: "
                    "it would delete all jobs.",
                    hint='Set another database in RTQ["REDIS"], or its number in RTQ["DB"].',
                    id="rtq.E003",
                )
            ]
    if config.lease_seconds < 5:
        return [
            Warning(
                f'RTQ["LEASE_SECONDS"] is {config.lease_seconds}: on a busy machine it may expire, and jobs run twice.',
                hint="Set it to 5 or more; the default is 15.",
                id="rtq.W001",
            )
        ]
    return []


def _is_plain(config: Config) -> bool:
    """Whether nothing can be wrong with RTQ["REDIS"]: then redis-py, whose import takes long, need not read it."""
    if config.shards is not None or config.db is not None or not _PLAIN_URL.fullmatch(str(config.redis)):
        return False
    backends = [str(cache.get("BACKEND")) for cache in caches.settings.values()]
    return all(name.startswith(_DJANGOS_CACHES) and "redis" not in name for name in backends)


def check_declarations(**kwargs: Any) -> list[CheckMessage]:
    """rtq.E002: a schedule in the code or in RTQ["SCHEDULES"] is invalid.

    rtq.E007: an entry of RTQ["MIDDLEWARE"] cannot be used. rtq.E009: what RTQ["EMAIL"] says about e-mails in the
    background cannot be used.
    """
    try:
        config = get_config()
    except ConfigurationError:
        return []  # reported as rtq.E001
    checks: list[tuple[str, str, Callable[[Config], object]]] = [
        ("rtq.E002", "", declared_schedules),
        ("rtq.E007", "", _check_middleware),
        ("rtq.E009", 'RTQ["EMAIL"]: ', lambda config: config.email and [check() for check in parts("email_check")]),
    ]
    problems: list[CheckMessage] = []
    for code, about, check in checks:
        try:
            check(config)
        except (ConfigurationError, InvalidTask) as error:
            problems.append(Error(f"{about}{error}", id=code))
    return problems


def _check_middleware(config: Config) -> None:
    if config.middleware:
        from django_rtq.core.middleware import check

        kinds = {task.is_async for task in all_tasks().values() if not task.internal}
        check(config.middleware, has_functions=False in kinds, has_coroutines=True in kinds)


def check_server(**kwargs: Any) -> list[CheckMessage]:
    """rtq.E004: the server refuses the connection, or is a Redis Cluster.

    rtq.W002: its configuration may lose jobs.

    For `check --deploy`. No error if the server cannot be reached, as when an image is built.
    """
    if any(message.level >= ERROR for message in check_settings()):
        return []  # fix these first
    try:
        return [problem for place in places() for problem in _check_server_of(place)]
    except ConfigurationError:
        return []  # reported as rtq.E005


def _check_server_of(place: str) -> list[CheckMessage]:
    from django_rtq.core.broker.server_info import ask_server

    shard = shard_of(place)
    whose = f"Shard {shard}: " if shard is not None else f"TASKS[{place!r}]: " if place else ""
    try:
        broker = get_broker(place)
        problems = ask_server(broker.redis, broker.keys)
    except (ConfigurationError, BrokerError) as error:
        is_away = isinstance(error, BrokerUnavailable) and not isinstance(error, BrokerRefused)
        return [] if is_away else [Error(f"{whose}{error}", id="rtq.E004")]
    return [Warning(f"{whose}{problem}", id="rtq.W002") for problem in problems]


def check_databases(**kwargs: Any) -> list[CheckMessage]:
    """rtq.W003: each job that uses a database opens a new connection. For `check --deploy`."""
    return [
        Warning(
            f"Each job that uses the database {alias!r} opens a new connection: its CONN_MAX_AGE is 0.",
            hint="Set CONN_HEALTH_CHECKS to True and CONN_MAX_AGE to 60, in the settings of the workers at least; or, "
            'with psycopg, CONN_HEALTH_CHECKS to True and OPTIONS["pool"] to {"max_size": …}, as many as the worker\'s '
            "--concurrency. Silence this if no job uses it, or if a pooler runs beside it.",
            id="rtq.W003",
        )
        for alias, settings in connections.settings.items()
        if _connects_anew(settings)
    ]


def check_commits(**kwargs: Any) -> list[CheckMessage]:
    """rtq.W004: jobs of TASKS do not wait for commits, or the database whose commit jobs await has no ENGINE.

    For `check --deploy`.
    """
    try:
        setting, awaited = get_config().enqueue_on_commit, named_database() or written_database()
    except ConfigurationError:
        return []  # reported as rtq.E001
    rules = {
        alias: backend["OPTIONS"].get("on_commit", setting)
        for alias, backend in task_backends().items()
        if is_ours(backend)
    }
    problems: list[CheckMessage] = [
        Warning(
            f"Jobs of TASKS[{alias!r}] are sent at once, also while a transaction is open: a worker may run them "
            "before the commit and not find the rows they are about, and they run after a rollback, too.",
            hint='Remove RTQ["ENQUEUE_ON_COMMIT"] = False and the option on_commit of the backend: then they wait for '
            "the commit. Silence this if no package enqueues jobs in transactions.",
            id="rtq.W004",
        )
        for alias, rule in rules.items()
        if rule is False
    ]
    engines = {alias: settings["ENGINE"] for alias, settings in connections.settings.items()}
    if engines.get(awaited) == _NO_ENGINE and {*engines.values()} != {_NO_ENGINE}:
        problems.append(
            Warning(
                f"Jobs that wait for a commit wait for that of the database {awaited!r}, which has no ENGINE: they are "
                "sent at once, before the commit of the database that the project writes.",
                hint='Name that database: RTQ["ENQUEUE_ON_COMMIT"] = "its alias". Or let db_for_write() of a router '
                "name it for the app django_rtq.",
                id="rtq.W004",
            )
        )
    return problems


def check_tables(**options: Any) -> list[CheckMessage]:
    """rtq.W005: tables are missing that an app needs. For `check --database`."""
    return [problem for check in parts("check_tables") for problem in check(**options)]


def _connects_anew(settings: Mapping[str, Any]) -> bool:
    """Not for a database in memory, and not for one that is not configured (the dummy)."""
    is_kept = settings["CONN_MAX_AGE"] != 0 or settings["OPTIONS"].get("pool")
    return not is_kept and "dummy" not in settings["ENGINE"] and "memory" not in str(settings["NAME"])
