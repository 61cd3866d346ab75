"""The settings: one dictionary RTQ, read once into a frozen Config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeGuard

from django.conf import UserSettingsHolder, global_settings, settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS
from django.dispatch import receiver

from django_rtq.conf.incident_options import IncidentOptions, check_incidents
from django_rtq.conf.log_options import job_log_level
from django_rtq.conf.option_checks import are_names, check_names, check_schedules
from django_rtq.conf.queue_options import QueueConfig, check_queues
from django_rtq.conf.rules import RULE, VersionRule, number
from django_rtq.exceptions import ConfigurationError, RedisNotAllowed
from django_rtq.under_test import is_under_test
from django_rtq.validation import did_you_mean

DEBUG_REDIS = "redis://localhost:6379/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every option with its default, its unit and its rule. RTQ["LEASE_SECONDS"] sets ``lease_seconds``."""

    #: Where Redis is: a URL, an alias of CACHES, a Sentinel description, or the dotted path of a factory.
    redis: str | Mapping[str, Any] = ""
    #: The database number; required with an alias of CACHES, because cache.clear() empties the cache's own.
    db: int | None = None
    #: Where Redis is for tests, in one of the same forms. Not set: a test that would reach REDIS is refused.
    test_redis: str | Mapping[str, Any] = ""
    #: Timeout of Redis commands, and of connecting, in producers, the admin and management commands.
    socket_timeout: float = number(5.0)
    socket_connect_timeout: float = number(5.0)
    #: What every key starts with.
    prefix: str = "rtq"
    #: The queue of tasks that do not name one.
    default_queue: str = "default"
    #: How long a worker may be silent before its jobs are reclaimed.
    lease_seconds: float = number(15.0)
    #: Runs of a job that may fail or time out before it is dead.
    max_attempts: int = number(5, whole=True)
    #: Runs of a job that may crash their worker before it is dead.
    max_crashes: int = number(3, zero=True, whole=True)
    #: Seconds that a job may run, unless its task says otherwise; None: no limit.
    time_limit: float | None = number(None)
    #: Seconds between the exception of a time limit and the kill, for jobs that ignore the exception.
    kill_grace_seconds: float = number(5.0, zero=True)
    #: Seconds that results are kept; 0 keeps only the ids, for two minutes.
    result_ttl: float = number(3600.0, zero=True)
    #: Maximum number of results kept per queue.
    max_results: int = number(10_000, whole=True)
    #: Maximum number of dead letters kept per queue, and for how long.
    max_dead_letters: int = number(100_000, whole=True)
    dead_letter_days: float = number(90.0)
    #: How long it is known that a job of a task with exactly_once has committed.
    exactly_once_days: float = number(7.0)
    #: Maximum size of a result that is kept with that, in bytes of JSON; 0: no result is kept.
    exactly_once_max_result_bytes: int = number(65_536, whole=True, zero=True)
    #: Maximum size of the arguments of a job, and of a result, in bytes of JSON.
    max_payload_bytes: int = number(1024 * 1024, whole=True)
    #: Seconds that a job waits for a worker that knows its task, before it is dead.
    unknown_task_timeout: float = number(86_400.0, zero=True)
    #: A worker process that uses more memory is replaced after its job; None: no limit.
    max_memory_mb: float | None = number(None)
    #: Periodic jobs: name -> {"task": …, "cron": … or "every": seconds, "tz", "args", "kwargs", "missed", "overlap"}.
    schedules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Options of single queues: name -> {"delayed_first": True}.
    queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Seconds between two refreshes of an open page of the admin; 0: no refresh.
    admin_refresh_seconds: float = number(5.0, zero=True)
    #: Jobs are sent after the commit of an open transaction of the default database (True), of that database (an
    #: alias), or at once (False). None: at once, and with a warning while DEBUG is on.
    enqueue_on_commit: bool | str | None = None
    #: Jobs of an open transaction of the default database (True) or of that one (an alias) are rows of it, too, until
    #: they are in Redis.
    outbox: bool | str | None = None
    #: The version of the project, which workers report: deploys are marked in the charts of the admin. None or "": no.
    version: str | None = field(default=None, metadata={RULE: VersionRule()})
    #: The modules of each app that are searched for tasks.
    task_modules: tuple[str, ...] = field(default=("tasks",))
    #: From when on something is an incident, and which kinds are not reported.
    incidents: Mapping[str, Any] = field(default_factory=dict)
    #: Keep the arguments of jobs with their results, unless their task says otherwise.
    keep_args: bool = False
    #: Keep the last lines that a job logs: all that its loggers let through (True), or those from a level on ("INFO").
    job_logs: bool | str | None = None
    #: Let django_rtq.compat.celery take the place of the package celery, for apps that cannot be edited.
    celery_stand_in: bool = False
    #: For django_rtq.mail: the real "backend", and options of Task.using() for all messages.
    email: Mapping[str, Any] = field(default_factory=dict)
    #: Dotted paths of middleware, the outermost first.
    middleware: tuple[str, ...] = field(default=())

    @property
    def cancelled_ttl_ms(self) -> int:
        """For how long the outcome of a job that was cancelled before it ran is kept."""
        return int(max(self.result_ttl, 120) * 1000)

    @property
    def dead_letter_ms(self) -> int:
        """For how long dead letters are kept, and what lies beside jobs that are not over."""
        return int(self.dead_letter_days * 86_400_000)

    def queue(self, name: str) -> QueueConfig:
        """The options of a queue."""
        return QueueConfig(**self.queues.get(name, {}))

    @property
    def job_log_level(self) -> int | None:
        """The lowest level of log lines of jobs that are kept; None: none are."""
        return job_log_level(self.job_logs)

    @property
    def incident_options(self) -> IncidentOptions:
        """The options in RTQ["INCIDENTS"], with their defaults."""
        return IncidentOptions(**self.incidents)


_added_middleware: list[str] = []


@lru_cache(maxsize=1)
def get_config() -> Config:
    """The settings, read when first needed. Raises ConfigurationError."""
    config = read_config(getattr(settings, "RTQ", None), debug=settings.DEBUG or is_under_test())
    return replace(config, middleware=(*_added_middleware, *config.middleware)) if _added_middleware else config


def add_middleware(path: str) -> None:
    """Put middleware around that of the setting: for integrations. May be called twice."""
    if path not in _added_middleware:
        _added_middleware.append(path)
        get_config.cache_clear()


def read_config(options: Any, *, debug: bool) -> Config:
    """Turn the dictionary RTQ into a Config. Raises ConfigurationError for invalid options."""
    if not isinstance(options, Mapping | None):
        # Not its value: a URL may hold a password.
        kind = type(options).__name__
        raise ConfigurationError(f'RTQ is of type {kind}, but has to be a dictionary of options, like {{"REDIS": …}}.')
    values = {_field_name(key): value for key, value in (options or {}).items()}
    # REDIS stays as it was written: what is wrong with it is told by its type.
    values = {
        name: tuple(v) if isinstance(v, list) and name not in ("redis", "test_redis") else v
        for name, v in values.items()
    }
    if not values.get("redis"):
        values["redis"] = _default_redis(debug=debug)
    config = Config(**values)
    _check_values(config)
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
    if config.redis in (found := _redis_of_project()):
        name = 'RTQ["REDIS"]' if config.redis == found[0] else "that of a backend in TASKS"
        raise RedisNotAllowed(
            f"This test would reach the Redis of the project, {name}. Use django_rtq.testing: captured() collects "
            "jobs, eager() runs them at once, private_redis() with drain() runs them from a Redis of the test's own; "
            "in pytest the fixtures rtq_captured, rtq_eager and rtq_drain. If there is a Redis that all tests may "
            'use, set RTQ["TEST_REDIS"].'
        )
    return config


def _redis_of_project() -> list[Any]:
    """RTQ["REDIS"] of the settings module, without what tests override, and those of its backends in TASKS."""
    found = getattr(settings, "_wrapped")  # noqa: B009
    while isinstance(found, UserSettingsHolder) and found.default_settings is not global_settings:
        found = found.default_settings
    options = getattr(found, "RTQ", None)
    own = (options.get("REDIS") if isinstance(options, Mapping) else None) or DEBUG_REDIS
    return [own, *(each["OPTIONS"]["REDIS"] for each in task_backends(found).values() if "REDIS" in each["OPTIONS"])]


def _field_name(key: object) -> str:
    known = {option.name.upper(): option.name for option in fields(Config)}
    if isinstance(key, str) and key in known:
        return known[key]
    raise ConfigurationError(f"RTQ has an unknown option {key!r}.{_hint(str(key).upper(), known)}")


def _hint(name: object, known: Iterable[str]) -> str:
    return did_you_mean(str(name), known, otherwise=f" Known are: {', '.join(sorted(known))}.", quoted=True)


def _default_redis(*, debug: bool) -> str:
    if debug:
        return DEBUG_REDIS
    raise ConfigurationError(
        'RTQ["REDIS"] is not set. Write for example RTQ = {"REDIS": "redis://localhost:6379/0"} in your settings '
        f"({DEBUG_REDIS} is the default only while DEBUG is on)."
    )


def _check_values(config: Config) -> None:
    for option in fields(Config):
        value, rule = getattr(config, option.name), option.metadata.get(RULE)
        if rule is not None and (problem := rule.problem(value)):
            raise ConfigurationError(f'RTQ["{option.name.upper()}"] is {value!r}, but has to be {problem}.')
    check_names(config.prefix, config.default_queue, config.task_modules)
    if not are_names(config.middleware):
        raise ConfigurationError(
            f'RTQ["MIDDLEWARE"] is {config.middleware!r}, but has to be a list of dotted paths, like '
            '["shop.queue.TenantMiddleware"].'
        )
    check_schedules(config.schedules)
    check_queues(config.queues)
    check_incidents(config.incidents)
    email: Any = config.email
    if not isinstance(email, Mapping) or not isinstance(email.get("backend", ""), str):
        raise ConfigurationError(
            'RTQ["EMAIL"] has to be a dictionary with the dotted path of a "backend" and options of using(), like '
            '{"backend": "anymail.backends.mailgun.EmailBackend", "queue_name": "mail"}.'
        )
    job_log_level(config.job_logs)
    for name in ("keep_args", "celery_stand_in"):
        if not isinstance(value := getattr(config, name), bool):
            raise ConfigurationError(f'RTQ["{name.upper()}"] is {value!r}, but has to be True or False.')
    _check_database("ENQUEUE_ON_COMMIT", config.enqueue_on_commit)
    _check_database("OUTBOX", config.outbox)
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


def _check_database(option: str, value: Any) -> None:
    if value is not None and not isinstance(value, bool) and not is_database(value):
        raise ConfigurationError(
            f'RTQ["{option}"] is {value!r}, but has to be True, False, or the alias of a database in DATABASES.'
            f"{did_you_mean(str(value), settings.DATABASES, quoted=True)}"
        )


def is_database(value: object) -> TypeGuard[str]:
    """Whether it is an alias in DATABASES."""
    return isinstance(value, str) and value in settings.DATABASES


@receiver(setting_changed)
def forget_config(*, setting: str, **kwargs: object) -> None:
    """Read the settings again when a test overrides them."""
    if setting in ("RTQ", "DEBUG"):
        get_config.cache_clear()


def task_modules() -> tuple[str, ...]:
    """The modules that are searched for tasks at startup, before the other options are checked."""
    options = getattr(settings, "RTQ", None)
    found = options.get("TASK_MODULES") if isinstance(options, Mapping) else None
    return tuple(found) if are_names(found) else ("tasks",)  # a system check reports what is wrong with it


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
            "BACKEND": str(each.get("BACKEND")),
            "QUEUES": [str(name) for name in each.get("QUEUES", ["default"])],
            "OPTIONS": each.get("OPTIONS") or {},
        }
        for alias, each in (getattr(source, "TASKS", None) or {}).items()
    }


def is_ours(backend: Mapping[str, Any]) -> bool:
    """Whether a backend of task_backends() is of this package."""
    return bool(backend["BACKEND"].startswith("django_rtq."))


def config_of_backend(own: Mapping[str, Any]) -> Config:
    """The settings with REDIS, DB and PREFIX of a backend in TASKS. Raises ConfigurationError."""
    changes: dict[str, Any] = {name.lower(): value for name, value in own.items()}
    config = replace(get_config(), **({"db": None} | changes if "REDIS" in own else changes))  # DB is about REDIS
    check_names(config.prefix, config.default_queue, config.task_modules)
    return config


def celery_beat_schedule() -> tuple[Mapping[str, Any] | None, str]:
    """The setting CELERY_BEAT_SCHEDULE, and the time zone of Celery. For projects that come from there."""
    zone = getattr(settings, "CELERY_TIMEZONE", None) or "UTC"
    return getattr(settings, "CELERY_BEAT_SCHEDULE", None), str(zone)


def uses_time_zones() -> bool:
    """Whether datetimes must be timezone-aware."""
    return bool(settings.USE_TZ)


def time_zone_name() -> str:
    """The time zone of times that do not name one."""
    return str(settings.TIME_ZONE or "UTC")


def is_debug() -> bool:
    """Whether Django logs all database queries in memory, which a worker has to clear."""
    return bool(settings.DEBUG)
