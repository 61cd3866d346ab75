"""Incidents of the Redis server, of shards that do not answer, and of the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from django_rtq.console.incidents.incident import DETECTORS, SHARD, SYSTEM, Action, Incident, Seen
from django_rtq.console.server_info import PROBLEMS, problem_values
from django_rtq.core.jobs.job import moment

OUTBOX_SECONDS = 60.0  # jobs that are in the outbox for less are not reported
CLOCK_SECONDS = 1.0  # a clock that is behind by less is not reported
_translated = _  # of texts that are marked elsewhere
_CRITICAL = {"evicts", "full", "log_failed", "snapshot_failed", "replica"}  # of the warnings of the server


def _warning(name: str, seen: Seen) -> Iterator[Incident]:
    if name in seen.overview.server.warnings:
        yield DETECTORS[f"redis_{name}"].incident(**problem_values(seen.overview.server))


for _name, _text in PROBLEMS.items():
    _declare = SYSTEM.critical if _name in _CRITICAL else SYSTEM.warning
    _declare(_("Redis server"), _translated(_text)).named(f"redis_{_name}", partial(_warning, _name))


@SYSTEM.warning(
    _("Clock behind"),
    _(
        "The clock of the Redis server was set back and is %(duration)s behind. Until it has caught up, time passes 10 "
        "percent more slowly for jobs."
    ),
)
def clock_behind(seen: Seen) -> Iterator[Incident]:
    """The clock of the server was set back."""
    behind = max((queue.clock_behind_seconds for queue in seen.queues), default=0.0)
    if behind >= CLOCK_SECONDS:
        yield clock_behind.incident(duration=behind)


@SYSTEM.warning(
    _("Data lost"),
    _(
        "Redis lost its data: the jobs, results and dead letters of before are gone. Limits that were set at run time "
        "are gone, too; those of the settings are stored again."
    ),
)
def data_lost(seen: Seen) -> Iterator[Incident]:
    """The server lost its data."""
    if seen.overview.server.data_lost_ms is not None:
        yield data_lost.incident(since=moment(seen.overview.server.data_lost_ms))


@SHARD.critical(
    _("Shard unreachable"),
    _("%(subject)s does not answer. Its jobs wait, and those of the other shards go on."),
    also={"missing_here": _("Its jobs are missing here."), "redis_said": "%(error)s"},
)
def shard_unreachable(seen: Seen) -> Iterator[Incident]:
    """Shards that do not answer. Found by those who ask them: a scheduler of another shard, and pages of all shards."""
    yield from ()


def silent_shard(number: int, error: str, *, since: datetime | None = None, is_missing: bool = False) -> Incident:
    """That a shard does not answer. `is_missing`: for a page that shows the others."""
    also = ("missing_here", "redis_said") if is_missing else ("redis_said",)
    return shard_unreachable.incident(since=since, shard=str(number), error=error[:500], also=also)


@SYSTEM.critical(
    _("Outbox lag"),
    ngettext_lazy(
        "%(count)s job waits in the outbox, for %(duration)s.",
        "%(count)s jobs wait in the outbox, the oldest for %(duration)s.",
        "number",
    ),
    Action.SHOW_OUTBOX,
    Action.SHOW_WORKERS,
    also={
        "outbox_error": _("The oldest was refused: %(error)s"),
        "outbox_stands": _("Is a worker or scheduler running with this database, and does its log name an error?"),
    },
)
def outbox_lag(seen: Seen) -> Iterator[Incident]:
    """Jobs that have been in the outbox for long."""
    lag = seen.lag
    if lag is not None and not lag.error and lag.oldest_seconds >= OUTBOX_SECONDS:
        is_refused = bool(lag.oldest_error)
        yield outbox_lag.incident(
            since=seen.ago(lag.oldest_seconds),
            count=lag.jobs,
            duration=lag.oldest_seconds,
            error=lag.oldest_error[:500],
            also=("outbox_error",) if is_refused else ("outbox_stands",),
            queue=lag.oldest_queue if is_refused else "",
            actions=(Action.SHOW_OUTBOX, Action.SHOW_QUEUE) if is_refused else outbox_lag.actions,
        )


@SYSTEM.critical(
    _("Outbox unknown"),
    _("The database did not say how many jobs wait in the outbox: %(error)s"),
)
def outbox_unknown(seen: Seen) -> Iterator[Incident]:
    """The database does not answer."""
    if seen.lag is not None and seen.lag.error:
        yield outbox_unknown.incident(error=seen.lag.error[:500])
