"""What RTQ["INCIDENTS"] may say: from when on something is an incident, and which kinds are not reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django_rtq.exceptions import ConfigurationError
from django_rtq.validation import did_you_mean, is_finite

#: The kinds of incidents.
KINDS = (
    "no_worker",
    "queue_unserved",
    "queues_without_worker",
    "workers_quiet",
    "worker_lost",
    "worker_silent",
    "host_without_worker",
    "task_failing",
    "dead_letters",
    "job_hung",
    "long_wait",
    "falling_behind",
    "busy_client",
    "no_scheduler",
    "jobs_lost_place",
    "schedule_missed",
    "schedule_invalid",
    "queue_paused",
    "task_paused",
    "task_unknown",
    "several_projects",
    "client_paused",
    "outbox_lag",
    "outbox_unknown",
    "redis_evicts",
    "redis_volatile",
    "redis_nearly_full",
    "redis_log_failed",
    "redis_snapshot_failed",
    "redis_replica",
    "clock_behind",
    "data_lost",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentOptions:
    """The options in RTQ["INCIDENTS"]."""

    #: Seconds that the oldest queued job of a queue may wait.
    oldest_seconds: float = 300.0
    #: Share of the runs of a task that may fail, from 0 to 1.
    failure_rate: float = 0.2
    #: Dead letters of a queue in an hour, from which on they are an incident.
    dead_letters: int = 1
    #: Seconds that a job without a time limit may run, if nobody knows how long its task usually takes.
    running_seconds: float = 3600.0
    #: Share of the run time of a queue that one client may have while others wait, from 0 to 1.
    client_share: float = 0.8
    #: Kinds that are not reported.
    ignore: Collection[str] = field(default=())
    #: Kinds that are always critical, so that the health view answers 503.
    critical: Collection[str] = field(default=())


_KIND_LISTS = ("ignore", "critical")
_SHARES = ("failure_rate", "client_share")


def check_incidents(options: Any) -> None:
    """Check the value of RTQ["INCIDENTS"]. Raises ConfigurationError."""
    if not isinstance(options, Mapping):
        raise ConfigurationError('RTQ["INCIDENTS"] has to be a dictionary of options, like {"oldest_seconds": 600}.')
    known = [option.name for option in fields(IncidentOptions)]
    for name, value in options.items():
        if name not in known:
            hint = did_you_mean(str(name), known, otherwise=f" Known are: {', '.join(known)}.", quoted=True)
            raise ConfigurationError(f'RTQ["INCIDENTS"] has an unknown option {name!r}.{hint}')
        if problem := _problem(name, value):
            raise ConfigurationError(f'RTQ["INCIDENTS"][{name!r}] is {value!r}, but has to be {problem}.')


def _problem(name: str, value: Any) -> str:
    if name in _KIND_LISTS:
        is_list = isinstance(value, list | tuple | set | frozenset)
        unknown = [each for each in value if each not in KINDS] if is_list else []
        if unknown:
            return f"a list of kinds of incidents: {unknown[0]!r} is none.{did_you_mean(str(unknown[0]), KINDS)}"
        return "" if is_list else 'a list of kinds of incidents, like ["redis_volatile"]'
    if name in _SHARES:
        return "" if is_finite(value) and 0 < value <= 1 else "a number above 0, up to 1"
    if name == "dead_letters" and type(value) is not int:
        return "a whole number above 0"
    return "" if is_finite(value) and value > 0 else "a number above 0"
