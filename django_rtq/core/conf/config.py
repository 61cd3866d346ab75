"""The settings: one dictionary RTQ, read once into a frozen Config."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from django.conf import UserSettingsHolder, global_settings, settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS
from django.dispatch import receiver

from django_rtq.core.conf.option import (
    FLAG,
    Kind,
    accepts,
    checked_by,
    list_of_names,
    number,
    option,
    options_of,
    seconds,
    text,
    unknown_option,
)
from django_rtq.core.conf.queue_options import QUEUE_NAME, QueueConfig, check_queues
from django_rtq.core.extension import parts
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import ConfigurationError, RedisNotAllowed

DEBUG_REDIS = "redis://localhost:6379/0"


def _read_database(value: Any) -> Any:
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value in settings.DATABASES):
        return value
    known = f" It has: {', '.join(sorted(settings.DATABASES))}."
    hint = did_you_mean(str(value), settings.DATABASES, otherwise=known, quoted=True)
    raise ValueError(f"{DATABASE.says}.{hint}")


def _read_level(value: object) -> int | None:
    if value is None or value is False:
        return None
    level = logging.NOTSET if value is True else logging.getLevelName(value) if isinstance(value, str) else None
    if not isinstance(level, int):
        raise ValueError
    return level


#: Which commit jobs wait for.
DATABASE = Kind("True, False, or the alias of a database in DATABASES", _read_database)
_LOG_LEVEL = Kind('True, False, or the name of a level of logging, like "INFO"', _read_level)
_PREFIX = accepts(
    lambda value: isinstance(value, str) and value != "" and not set(value) & set("{}:*? \n"),
    "a word without {}:*? or spaces",
)
_SCHEDULES = accepts(  # their options are checked when they are read
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and name and isinstance(options, Mapping) for name, options in value.items())
    ),
    'a dictionary of names and options, like {"report": {"task": "shop.tasks.report", "cron": "0 5 * * *"}}',
)
_QUEUES = checked_by(check_queues, 'a dictionary of names and options, like {"mail": {"delayed_first": True}}')
_EMAIL = accepts(  # a system check, which may import tasks, checks the options of using()
    lambda value: isinstance(value, Mapping) and isinstance(value.get("backend", ""), str),
    'a dictionary with the dotted path of a "backend" and options of using(), like {"queue_name": "mail"}',
)
_TASK_MODULES = list_of_names("names", "tasks")
_SECONDS, _SECONDS_OR_ZERO = seconds(or_none=False), seconds(or_zero=True, or_none=False)
_DAYS = number(above=0, most=36_500)
_COUNT, _COUNT_OR_ZERO = number(least=1, whole=True), number(whole=True)
_TEST = accepts(
    lambda value: value is None or value in ("eager", "captured", "drain"), '"eager", "captured" or "drain"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every option with its default, its kind and its unit. RTQ["LEASE_SECONDS"] sets ``lease_seconds``."""

    #: Where Redis is: a URL, an alias of CACHES, a description of Sentinels or a Cluster, or a factory's dotted path.
    redis: str | Mapping[str, Any] = option("")
    #: The database number; required with an alias of CACHES, because cache.clear() empties the cache's own.
    db: int | None = option(None)
    #: In how many slots of a Cluster the queues are; None: in one.
    shards: int | None = option(None, number(least=1, most=1024, whole=True, or_none=True))  # as ids have room for
    #: Where Redis is for tests, in one of the same forms. Not set: a test that would reach REDIS is refused.
    test_redis: str | Mapping[str, Any] = option("")
    #: What becomes of jobs in a test run: "eager", "captured" or "drain". None: a test that enqueues has to say it.
    test: str | None = option(None, _TEST)
    #: Timeout of Redis commands, and of connecting, in producers, the admin and management commands.
    socket_timeout: float = option(5.0, _SECONDS, unit="seconds")
    socket_connect_timeout: float = option(5.0, _SECONDS, unit="seconds")
    #: How many replicas have to have a job before delay() returns; 0: it does not ask.
    wait_replicas: int = option(0, _COUNT_OR_ZERO, unit="replicas")
    #: What every key starts with.
    prefix: str = option("rtq", _PREFIX, unit="text")
    #: The queue of tasks that do not name one.
    default_queue: str = option("default", QUEUE_NAME, unit="name")
    #: How long a worker may be silent before its jobs are reclaimed.
    lease_seconds: float = option(15.0, _SECONDS, unit="seconds")
    #: Runs of a job that may fail or time out before it is dead.
    max_attempts: int = option(5, _COUNT, unit="runs")
    #: Runs of a job that may crash their worker before it is dead.
    max_crashes: int = option(3, _COUNT_OR_ZERO, unit="runs")
    #: Seconds that a job may run, unless its task says otherwise; None: no limit.
    time_limit: float | None = option(None, seconds(), unit="seconds")
    #: Seconds between the exception of a time limit and the kill, for jobs that ignore the exception.
    kill_grace_seconds: float = option(5.0, _SECONDS_OR_ZERO, unit="seconds")
    #: Seconds that results are kept; 0 keeps only the ids, for two minutes.
    result_ttl: float = option(3600.0, _SECONDS_OR_ZERO, unit="seconds")
    #: Maximum number of results kept per queue.
    max_results: int = option(10_000, _COUNT, unit="jobs")
    #: Maximum number of dead letters kept per queue, and for how long.
    max_dead_letters: int = option(100_000, _COUNT, unit="jobs")
    dead_letter_days: float = option(90.0, _DAYS, unit="days")
    #: How long it is known that a job of a task with exactly_once has committed.
    exactly_once_days: float = option(7.0, _DAYS, unit="days")
    #: Maximum size of a result that is kept with that, in bytes of JSON; 0: no result is kept.
    exactly_once_max_result_bytes: int = option(65_536, _COUNT_OR_ZERO, unit="bytes")
    #: Maximum size of the arguments of a job, and of a result, in bytes of JSON.
    max_payload_bytes: int = option(1024 * 1024, _COUNT, unit="bytes")
    #: Seconds that a workflow is kept after its end, with the results of its steps.
    workflow_ttl: float = option(604_800.0, _SECONDS_OR_ZERO, unit="seconds")
    #: The largest result of a job that another step of its workflow takes, as JSON.
    max_step_result_bytes: int = option(65_536, _COUNT, unit="bytes")
    #: Seconds that a job waits for a worker that knows its task, before it is dead.
    unknown_task_timeout: float = option(86_400.0, _SECONDS_OR_ZERO, unit="seconds")
    #: A worker process that uses more memory is replaced after its job; None: no limit.
    max_memory_mb: float | None = option(None, number(above=0, or_none=True), unit="MB")
    #: Periodic jobs: name -> {"task": …, "cron": … or "every": seconds, "tz", "args", "kwargs", "missed", "overlap"}.
    schedules: Mapping[str, Mapping[str, Any]] = option({}, _SCHEDULES)
    #: Options of single queues: name -> {"delayed_first": True}.
    queues: Mapping[str, Mapping[str, Any]] = option({}, _QUEUES)
    #: Seconds between two refreshes of an open page of the admin; 0: no refresh.
    admin_refresh_seconds: float = option(5.0, _SECONDS_OR_ZERO, unit="seconds")
    #: Jobs are sent after the commit of an open transaction of the default database (True), of that database (an
    #: alias), or at once (False). None: at once, and with a warning while DEBUG is on.
    enqueue_on_commit: bool | str | None = option(None, DATABASE)
    #: Jobs of an open transaction of the default database (True) or of that one (an alias) are rows of it, too, until
    #: they are in Redis.
    outbox: bool | str | None = option(None, DATABASE)
    #: The version of the project, which workers report: deploys are marked in the charts of the admin. None or "": no.
    version: str | None = option(None, text(100, or_none=True), unit="text")
    #: The modules of each app that are searched for tasks.
    task_modules: tuple[str, ...] = option(("tasks",), _TASK_MODULES, unit="names")
    #: From when on something is an incident, and which kinds are not reported.
    incidents: Mapping[str, Any] = option(
        {}, checked_by(lambda options: [check(options) for check in parts("check_incidents")], "")
    )
    #: Keep the arguments of jobs with their results, unless their task says otherwise.
    keep_args: bool = option(False, FLAG)
    #: Keep the last lines that a job logs: all that its loggers let through (True), or those from a level on ("INFO").
    #: Read into that level, 0 for all; None: none are kept.
    job_logs: int | None = option(None, _LOG_LEVEL)
    #: Let django_rtq.compat.celery take the place of the package celery, for apps that cannot be edited.
    celery_stand_in: bool = option(False, FLAG)
    #: For django_rtq.mail: the real "backend", and options of Task.using() for all messages.
    email: Mapping[str, Any] = option({}, _EMAIL)
    #: Dotted paths of middleware, the outermost first.
    middleware: tuple[str, ...] = option(
        (), list_of_names("dotted paths", "shop.queue.TenantMiddleware"), unit="dotted paths"
    )

    @property
    def dead_letter_ms(self) -> int:
        """For how long dead letters are kept, and what lies beside jobs that are not over."""
        return int(self.dead_letter_days * 86_400_000)

    def queue(self, name: str) -> QueueConfig:
        """The options of a queue."""
        return QueueConfig(**self.queues.get(name, {}))


OPTIONS = {name.upper(): declared for name, declared in options_of(Config).items()}
_added_middleware: list[str] = []
_of_drain: dict[str, str] = {}  # PREFIX and TEST_REDIS while RTQ["TEST"] is "drain"


def is_under_test() -> bool:
    """Whether this process runs tests: after Django's setup_test_environment(), or in a process of pytest."""
    utils = sys.modules.get("django.test.utils")
    return (utils is not None and hasattr(utils._TestState, "saved_data")) or is_pytest()


def is_pytest() -> bool:
    """Whether this is a process of pytest. Programs that a test starts inherit the variables, but do not import it."""
    return "_pytest" in sys.modules and ("PYTEST_VERSION" in os.environ or "PYTEST_CURRENT_TEST" in os.environ)


@lru_cache(maxsize=1)
def get_config() -> Config:
    """The settings, read when first needed. Raises ConfigurationError."""
    config = read_config(getattr(settings, "RTQ", None), debug=settings.DEBUG or is_under_test())
    if _of_drain and config.test == "drain":
        test_redis = config.test_redis or _of_drain["test_redis"]
        config = replace(config, prefix=_of_drain["prefix"], test_redis=test_redis)
    return replace(config, middleware=(*_added_middleware, *config.middleware)) if _added_middleware else config


def add_middleware(path: str) -> None:
    """Put middleware around that of the setting: for integrations. May be called twice."""
    if path not in _added_middleware:
        _added_middleware.append(path)
        get_config.cache_clear()


def mode_of_tests() -> str | None:
    """RTQ["TEST"], in a test run. None elsewhere."""
    return get_config().test if is_under_test() else None


def set_redis_of_drain(test_redis: str, prefix: str) -> None:
    """Where jobs are while RTQ["TEST"] is "drain". `test_redis`: unless there is RTQ["TEST_REDIS"].

    Not with override_settings(), which has to end before those around it: this begins when it is needed.
    """
    _of_drain.update(test_redis=test_redis, prefix=prefix)
    get_config.cache_clear()


def read_config(options: Any, *, debug: bool) -> Config:
    """Turn the dictionary RTQ into a Config. Raises ConfigurationError for invalid options."""
    if not isinstance(options, Mapping | None):
        # Not its value: a URL may hold a password.
        kind = type(options).__name__
        raise ConfigurationError(f'RTQ is of type {kind}, but has to be a dictionary of options, like {{"REDIS": …}}.')
    values: dict[str, Any] = {}
    for key, value in (options or {}).items():
        if not isinstance(key, str) or key not in OPTIONS:
            raise unknown_option("RTQ", key, OPTIONS)
        values[key.lower()] = OPTIONS[key].kind.checked(f'RTQ["{key}"]', value)
    if not values.get("redis"):
        if not debug:
            raise ConfigurationError(
                'RTQ["REDIS"] is not set. Write for example RTQ = {"REDIS": "redis://localhost:6379/0"} in your '
                f"settings ({DEBUG_REDIS} is the default only while DEBUG is on)."
            )
        values["redis"] = DEBUG_REDIS
    config = Config(**values)
    _check_relations(config)
    if config.shards is not None:
        for placement in parts("placement"):
            placement.check_limits(config.shards, config.queues)
    return config


def is_all_in_test_redis() -> bool:
    """Whether RTQ["TEST_REDIS"] takes the place of each Redis: in a test run."""
    return is_under_test() and bool(get_config().test_redis)


def check_redis_is_allowed(config: Config) -> Config:
    """The config to connect with: in a test run the one with `test_redis`, else the same.

    Raises RedisNotAllowed in a test run for a Redis of the settings module. One that a test sets, for example with
    override_settings, is allowed.
    """
    if not is_under_test():
        return config
    if config.test_redis:
        is_url = isinstance(config.test_redis, str) and "://" in config.test_redis
        return replace(config, redis=config.test_redis, db=None if is_url else config.db)  # DB is about REDIS
    if config.redis in (of_project := _redis_of_project()):
        name = 'RTQ["REDIS"]' if config.redis == of_project[0] else "that of a backend in TASKS"
        raise RedisNotAllowed(
            f"This test would reach the Redis of the project, {name}. Use django_rtq.testing: captured() collects "
            "jobs, eager() runs them at once, private_redis() with drain() runs them from a Redis of the test's own; "
            'in pytest the fixtures rtq_captured, rtq_eager and rtq_drain. RTQ["TEST"] does one of them for all tests. '
            'If there is a Redis that all tests may use, set RTQ["TEST_REDIS"].'
        )
    return config


def _redis_of_project() -> list[Any]:
    """RTQ["REDIS"] of the settings module, without what tests override, and those of its backends in TASKS."""
    source = getattr(settings, "_wrapped")  # noqa: B009
    while isinstance(source, UserSettingsHolder) and source.default_settings is not global_settings:
        source = source.default_settings
    options = getattr(source, "RTQ", None)
    own = (options.get("REDIS") if isinstance(options, Mapping) else None) or DEBUG_REDIS
    return [
        own,
        *(backend["OPTIONS"]["REDIS"] for backend in task_backends(source).values() if "REDIS" in backend["OPTIONS"]),
    ]


def _check_relations(config: Config) -> None:
    awaited = {DEFAULT_DB_ALIAS if rule is True else rule for rule in (config.outbox, config.enqueue_on_commit)}
    if config.outbox and len(awaited - {None}) > 1:
        raise ConfigurationError(
            f'RTQ["OUTBOX"] is {config.outbox!r}, but RTQ["ENQUEUE_ON_COMMIT"] is {config.enqueue_on_commit!r}. '
            "An outbox sends jobs after the commit of its database: remove ENQUEUE_ON_COMMIT."
        )
    if config.lease_seconds < 1:
        raise ConfigurationError(
            f'RTQ["LEASE_SECONDS"] is {config.lease_seconds}: a lease under 1 s would run out while a machine '
            "is merely busy. Set it to 5 or more."
        )


@receiver(setting_changed)
def forget_config(*, setting: str, **kwargs: object) -> None:
    """Read the settings again when a test overrides them."""
    if setting in ("RTQ", "DEBUG"):
        get_config.cache_clear()


def task_modules() -> tuple[str, ...]:
    """The modules that are searched for tasks at startup, before the other options are checked."""
    options = getattr(settings, "RTQ", None)
    modules = options.get("TASK_MODULES") if isinstance(options, Mapping) else None
    try:
        return tuple(_TASK_MODULES.read(modules))
    except ValueError:
        return ("tasks",)  # a system check reports what is wrong with it


def has_celery_stand_in() -> bool:
    """Whether the package celery is to be replaced, before the other options are checked."""
    options = getattr(settings, "RTQ", None)
    return isinstance(options, Mapping) and options.get("CELERY_STAND_IN") is True


def project_name() -> str:
    """The package of ROOT_URLCONF: the same in all processes of a project; "" if that is not set."""
    return str(getattr(settings, "ROOT_URLCONF", None) or "").partition(".")[0]


def uses_task_backend() -> bool:
    """Whether TASKS names our backend for django.tasks, and there is django.tasks, or the package django-tasks."""
    if not any(map(is_ours, task_backends().values())):
        return False
    return find_spec("django.tasks") is not None or find_spec("django_tasks") is not None


def task_backends(source: Any = settings) -> dict[str, dict[str, Any]]:
    """The backends for django.tasks: alias in TASKS -> BACKEND, QUEUES and OPTIONS."""
    return {
        alias: {
            "BACKEND": str(backend.get("BACKEND")),
            "QUEUES": [str(name) for name in backend.get("QUEUES", ["default"])],
            "OPTIONS": backend.get("OPTIONS") or {},
        }
        for alias, backend in (getattr(source, "TASKS", None) or {}).items()
    }


def is_ours(backend: Mapping[str, Any]) -> bool:
    """Whether a backend of task_backends() is of this package."""
    return bool(backend["BACKEND"].startswith("django_rtq."))


def config_of_backend(own: Mapping[str, Any]) -> Config:
    """The settings with REDIS, DB and PREFIX of a backend in TASKS. Raises ConfigurationError."""
    changes: dict[str, Any] = {name.lower(): value for name, value in own.items()}
    config = replace(get_config(), **({"db": None} | changes if "REDIS" in own else changes))  # DB is about REDIS
    _PREFIX.checked('RTQ["PREFIX"]', config.prefix)
    return config


def uses_time_zones() -> bool:
    """Whether datetimes must be timezone-aware."""
    return bool(settings.USE_TZ)


def time_zone_name() -> str:
    """The time zone of times that do not name one."""
    return str(settings.TIME_ZONE or "UTC")


def is_debug() -> bool:
    """Whether Django logs all database queries in memory, which a worker has to clear."""
    return bool(settings.DEBUG)
