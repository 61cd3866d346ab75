"""The figures of the overview: four that tell how it goes, and the others."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.formatting import format_duration, format_number, format_percent, names_text
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.queues import in_an_hour
from django_rtq.console.reading.overview import Overview
from django_rtq.console.render.column import PageUrl
from django_rtq.databases.outbox import OutboxLag


def figures(overview: Overview, url: PageUrl) -> list[dict[str, Any]]:
    """The oldest wait, the failing share, what runs, and dead letters, of all queues."""
    queues = [row.details for row in overview.queues if row.details.oldest_seconds and not row.details.paused]
    oldest = max(queues, key=lambda queue: queue.oldest_seconds or 0.0, default=None)
    seconds = oldest.oldest_seconds if oldest else None
    free = (queue.oldest_seconds or 0.0 for queue in queues if not (queue.is_at_limit or queue.is_at_rate))
    is_late = max(free, default=0.0) > incident_options().oldest_seconds
    failed, done = (sum(row.lately(name) for row in overview.queues) for name in ("failed", "succeeded"))
    counts = {"failed": format_number(failed), "runs": format_number(failed + done)}
    share = failed / (failed + done) if failed or done else None
    is_failing = share is not None and share >= incident_options().failure_rate
    slots, dead = sum(worker.slots for worker in overview.living), _sum_of(overview, "dead")
    died = sum(in_an_hour(row.series, "dead") for row in overview.queues)
    return [
        {
            **_cell(_("Oldest wait"), format_duration(seconds), _tone(seconds, "rtq-is-bad" * is_late)),
            "note": oldest.name if oldest else "",
        },
        {
            **_cell(_("Failing"), format_percent(share), _tone(failed, "rtq-is-bad" * is_failing)),
            "note": _("%(failed)s of %(runs)s in 5 min") % counts if share is not None else "",
        },
        {
            **_total(_("Running"), _sum_of(overview, "running"), url("job_changelist")),
            "note": _("of %(slots)s slots") % {"slots": format_number(slots)},
        },
        {
            **_total(_("Dead letters"), dead, url("deadletter_changelist"), "rtq-is-bad"),
            "note": _("%(count)s in the last hour") % {"count": format_number(died)},
        },
    ]


def totals(overview: Overview, url: PageUrl, lag: OutboxLag | None = None) -> list[dict[str, Any]]:
    """The other totals of all queues."""
    cells = [
        _total(_("Queued"), _sum_of(overview, "queued")),
        _total(_("Scheduled"), _sum_of(overview, "scheduled")),
        _total(_("Retrying"), _sum_of(overview, "retrying")),
        _total(_("Done/min"), sum(row.per_minute("succeeded") for row in overview.queues)),
        _total(_("Workers"), len(overview.living), url("worker_changelist")),
        _scheduler(overview),
    ]
    if lag:
        cells.append(_total(_("Outbox"), lag.jobs, url("job_outbox")))
    server = overview.server
    if server.used_memory:
        figure = _cell(f"{server.name.title()} {server.version}", _size(server.used_memory))
        cells.append({**figure, "url": url("job_memory")})
    return cells


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
        seconds = (queue.scheduler_seconds for queue in late)
        longest = max((each for each in seconds if each is not None), default=None)
        return _cell(title, _ago_text(longest), "rtq-is-warn")
    if len(missing) == len(overview.queues):
        return _cell(title, _ago_text(overview.scheduler_seconds))
    if missing:
        return _cell(title, _("alive; none for %(names)s") % {"names": names_text(missing, 3)})
    return _cell(title, _("alive"))


def _ago_text(seconds: float | None) -> str:
    return _("never") if seconds is None else _("%(duration)s ago") % {"duration": format_duration(seconds)}


def _total(title: str, number: float, url: str = "", css: str = "") -> dict[str, Any]:
    return {"title": title, "text": format_number(number), "url": url, "css": _tone(number, css)}


def _tone(number: float | None, css: str) -> str:
    return css if number else "rtq-zero"


def _size(number: int) -> str:
    return _("%(number)s MB") % {"number": format_number(round(number / 1_048_576, 1))}
