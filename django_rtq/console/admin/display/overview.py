"""The totals of the overview."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.formatting import format_duration, format_number, names_text
from django_rtq.console.inspector.overview import Overview
from django_rtq.databases.outbox import OutboxLag


def totals(overview: Overview, url: PageUrl, lag: OutboxLag | None = None) -> list[dict[str, Any]]:
    """The totals of all queues, for the top of the page."""
    dead = _sum_of(overview, "dead")
    oldest = _longest(row.details.oldest_seconds for row in overview.queues)
    cells = [
        _total(_("Queued"), _sum_of(overview, "queued")),
        _cell(_("Oldest wait"), format_duration(oldest), "" if oldest else "rtq-zero"),
        _total(_("Scheduled"), _sum_of(overview, "scheduled")),
        _total(_("Retrying"), _sum_of(overview, "retrying")),
        _total(_("Running"), _sum_of(overview, "running"), url("job_changelist")),
        _total(_("Dead"), dead, url("deadletter_changelist"), "rtq-is-bad" if dead else ""),
        _total(_("Workers"), len(overview.living), url("worker_changelist")),
        _scheduler(overview),
        _total(_("Done/min"), sum(row.done_per_minute for row in overview.queues)),
    ]
    if lag:
        cells.append(_total(_("Outbox"), lag.jobs, url("job_outbox")))
    server = overview.server
    if server.used_memory:
        cells.append(_cell(f"{server.name.title()} {server.version}", _size(server.used_memory)))
    return cells


def sum_of_lags(lags: Iterable[OutboxLag | None]) -> OutboxLag | None:
    """What waits in the outbox for all shards."""
    every = [lag for lag in lags if lag is not None]
    if not every:
        return None
    return OutboxLag(jobs=sum(lag.jobs for lag in every), oldest_seconds=max(lag.oldest_seconds for lag in every))


def _sum_of(overview: Overview, name: str) -> int:
    return sum(getattr(row.details, name) for row in overview.queues)


def _cell(title: str, text: str, css: str = "") -> dict[str, Any]:
    return {"title": title, "text": text, "css": css}


def _scheduler(overview: Overview) -> dict[str, Any]:
    """Whether a scheduler looks for due jobs in every queue. No number that changes while it does."""
    title, missing = _("Scheduler"), overview.unscheduled
    if overview.scheduler_seconds is None or not overview.queues:
        return _cell(title, format_duration(None), "rtq-zero")
    late = [row.details for row in overview.queues if row.details.name in missing and row.details.needs_scheduler]
    if late:
        return _cell(title, _ago_text(_longest(queue.scheduler_seconds for queue in late)), "rtq-is-warn")
    if len(missing) == len(overview.queues):
        return _cell(title, _ago_text(overview.scheduler_seconds))
    if missing:
        return _cell(title, _("alive; none for %(names)s") % {"names": names_text(missing, 3)})
    return _cell(title, _("alive"))


def _longest(durations: Iterable[float | None]) -> float | None:
    return max((seconds for seconds in durations if seconds is not None), default=None)


def _ago_text(seconds: float | None) -> str:
    return _("never") if seconds is None else _("%(duration)s ago") % {"duration": format_duration(seconds)}


def _total(title: str, number: float, url: str = "", css: str = "") -> dict[str, Any]:
    return {"title": title, "text": format_number(number), "url": url, "css": css or ("" if number else "rtq-zero")}


def _size(number: int) -> str:
    return _("%(number)s MB") % {"number": format_number(round(number / 1_048_576, 1))}
