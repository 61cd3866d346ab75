"""The figures of the overview: four that tell how it goes, and the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from django_rtq.console.formatting import format_duration, format_number, format_percent, names_text
from django_rtq.console.incident_options import incident_options
from django_rtq.console.merging import most
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
    slots = sum(worker.slots for worker in overview.living)
    died = sum(row.series.total("dead") for row in overview.queues)
    return [
        _cell(_("Oldest wait"), seconds, format_duration, "rtq-is-bad" * is_late, note=oldest.name if oldest else ""),
        _cell(
            _("Failing"),
            share,
            format_percent,
            "rtq-is-bad" * is_failing,
            note=_("%(failed)s of %(runs)s in 5 min") % counts if share is not None else "",
        ),
        _cell(
            _("Running"),
            _sum_of(overview, "running"),
            url=url("job_changelist"),
            note=_("of %(slots)s slots") % {"slots": format_number(slots)},
        ),
        _cell(
            _("Dead letters"),
            _sum_of(overview, "dead"),
            css="rtq-is-bad",
            url=url("deadletter_changelist"),
            note=_("%(count)s in the last hour") % {"count": format_number(died)},
        ),
    ]


def totals(overview: Overview, url: PageUrl, lag: OutboxLag | None = None) -> list[dict[str, Any]]:
    """The other totals of all queues."""
    cells = [
        _cell(_("Queued"), _sum_of(overview, "queued")),
        _cell(_("Scheduled"), _sum_of(overview, "scheduled")),
        _cell(_("Retrying"), _sum_of(overview, "retrying")),
        _cell(_("Done/min"), sum(row.per_minute("succeeded") for row in overview.queues)),
        _cell(_("Workers"), len(overview.living), url=url("worker_changelist")),
        {"title": _("Scheduler"), **_scheduler(overview)},
    ]
    if lag:
        cells.append(_cell(_("Outbox"), lag.jobs, url=url("job_outbox")))
    server = overview.server
    if server.used_memory:
        name = f"{server.name.title()} {server.version}"
        cells.append(_cell(name, server.used_memory, _size, url=url("job_memory")))
    return cells


def _sum_of(overview: Overview, name: str) -> int:
    return sum(getattr(row.details, name) for row in overview.queues)


def _cell(
    title: str, value: Any, write: Callable[[Any], str] = format_number, css: str = "", **more: str
) -> dict[str, Any]:
    """`css`: of a value that is not nothing."""
    return {"title": title, "text": write(value), "css": css if value else "rtq-zero", **more}


def _scheduler(overview: Overview) -> dict[str, str]:
    """Whether a scheduler looks for due jobs in every queue. No number that changes while it does."""
    missing = overview.unscheduled
    if overview.scheduler_seconds is None or not overview.queues:
        return {"text": format_duration(None), "css": "rtq-zero"}
    late = [row.details for row in overview.queues if row.details.name in missing and row.details.needs_scheduler]
    if late:
        return {"text": _ago_text(most(queue.scheduler_seconds for queue in late)), "css": "rtq-is-warn"}
    if len(missing) == len(overview.queues):
        return {"text": _ago_text(overview.scheduler_seconds), "css": ""}
    some = _("alive; none for %(names)s") % {"names": names_text(missing, 3)}
    return {"text": some if missing else _("alive"), "css": ""}


def _ago_text(seconds: float | None) -> str:
    return _("never") if seconds is None else _("%(duration)s ago") % {"duration": format_duration(seconds)}


def _size(number: int) -> str:
    return _("%(number)s MB") % {"number": format_number(round(number / 1_048_576, 1))}
