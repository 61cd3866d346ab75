"""What RTQ["INCIDENTS"] may say: from when on something is an incident, and which kinds are not reported."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django_rtq.core.conf.config import get_config
from django_rtq.core.conf.option import Kind, check_options, number, option, options_of
from django_rtq.core.validation import did_you_mean
from django_rtq.exceptions import ConfigurationError

#: The kinds of incidents, as console/incidents/ declares them, which no worker imports.
KINDS = (
    *("no_worker", "queue_unserved", "queues_without_worker", "host_without_worker", "several_projects"),
    *("workers_quiet", "worker_lost", "worker_silent", "worker_crash_loop", "job_hung", "task_unknown"),
    *(
        "task_failing",
        "version_fails_more",
        "dead_letters",
        "long_wait",
        "falling_behind",
        "limit_zero",
        "busy_client",
        "no_scheduler",
    ),
    *("queue_paused", "task_paused", "client_paused", "jobs_lost_place", "workflow_blocked", "workflow_stuck"),
    *("schedule_missed", "schedule_invalid", "outbox_lag", "outbox_unknown", "clock_behind", "data_lost"),
    *("redis_evicts", "redis_volatile", "redis_full", "redis_nearly_full", "redis_connections", "redis_log_failed"),
    *("redis_snapshot_failed", "redis_replica", "shard_unreachable"),
)


def _kinds(value: Any) -> Any:
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValueError
    for name in value:
        if name not in KINDS:
            raise ValueError(f"a list of kinds of incidents: {name!r} is none.{did_you_mean(str(name), KINDS)}")
    return value


_KIND_LIST = Kind('a list of kinds of incidents, like ["redis_volatile"]', _kinds)
_POSITIVE, _SHARE = number(above=0), number(above=0, most=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentOptions:
    """The options in RTQ["INCIDENTS"]."""

    #: Seconds that the oldest queued job of a queue may wait.
    oldest_seconds: float = option(300.0, _POSITIVE)
    #: Share of the runs of a task that may fail, from 0 to 1.
    failure_rate: float = option(0.2, _SHARE)
    #: Dead letters of a queue in an hour, from which on they are an incident.
    dead_letters: int = option(1, number(above=0, whole=True))
    #: Seconds that a job without a time limit may run, if nobody knows how long its task usually takes.
    running_seconds: float = option(3600.0, _POSITIVE)
    #: Share of the run time of a queue that one client may have while others wait, from 0 to 1.
    client_share: float = option(0.8, _SHARE)
    #: Kinds that are not reported.
    ignore: Collection[str] = option((), _KIND_LIST)
    #: Kinds that are always critical, so that the health view answers 503.
    critical: Collection[str] = option((), _KIND_LIST)


_OPTIONS = {name: declared.kind for name, declared in options_of(IncidentOptions).items()}


def incident_options() -> IncidentOptions:
    """The options in RTQ["INCIDENTS"], with their defaults."""
    return IncidentOptions(**get_config().incidents)


def check_incidents(options: Any) -> None:
    """Check the value of RTQ["INCIDENTS"]. Raises ConfigurationError."""
    check_options('RTQ["INCIDENTS"]', options, _OPTIONS, like='{"oldest_seconds": 600}')
    if both := set(options.get("ignore", ())) & set(options.get("critical", ())):
        raise ConfigurationError(
            f"RTQ[\"INCIDENTS\"] has {min(both)!r} in 'ignore' and in 'critical': take it out of one of them."
        )
