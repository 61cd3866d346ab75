"""A bar that shows what the time of a job was spent on: delay, wait, runs, waits for retries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.formatting import format_duration
from django_rtq.core.jobs.details import CLOCKS_DIFFER, JobDetails
from django_rtq.core.jobs.job import JobState

WIDTH, HEIGHT, LEAST = 1000.0, 14, 3.0  # units of the drawing; a part is never narrower than LEAST
LONGEST = 10.0**9  # seconds
_TITLES = {
    "delay": gettext_lazy("delay"),
    "wait": gettext_lazy("wait"),
    "before": gettext_lazy("until the last run"),  # of a job whose outcome does not say more
    "failed": gettext_lazy("failed runs"),
    "retry": gettext_lazy("waits for retries"),
    "dead": gettext_lazy("dead"),
    "run": gettext_lazy("run"),
}


class Part(NamedTuple):
    """A part of a job's time."""

    kind: str  # a key of the titles
    seconds: float


def parts_of(job: JobDetails, now: datetime) -> list[Part]:
    """What the time was spent on since the job was enqueued, in order. Empty if too little is known.

    Runs that are not kept any more (the last five failures are) count as waits.
    """
    if job.made_at is None:
        return []
    parts, at = [], job.made_at
    for kind, until in _marks(job, now):
        if until > at:
            parts.append(Part(kind, (until - at).total_seconds()))
            at = until
    return parts


def time_bar(job: JobDetails, now: datetime) -> dict[str, Any] | None:
    """The bar and its legend; None if too little is known."""
    parts = parts_of(job, now)
    total = sum(part.seconds for part in parts)
    if not total:
        return None
    sums = {kind: sum(part.seconds for part in parts if part.kind == kind) for kind in _TITLES}
    legend = [
        {"css": f"rtq-part-{kind}", "title": str(title), "text": format_duration(sums[kind])}
        for kind, title in _TITLES.items()
        if sums[kind]
    ]
    label = _("Time of this job: %(parts)s") % {"parts": ", ".join(f"{key['title']} {key['text']}" for key in legend)}
    return {"svg": _svg(parts, total, label), "legend": legend, "total": format_duration(total)}


def _marks(job: JobDetails, now: datetime) -> Iterator[tuple[str, datetime]]:
    """Kinds of parts and where each ends."""
    requeued = job.requeued_at
    if not requeued and job.ready_at and job.made_at and job.ready_at - job.made_at > CLOCKS_DIFFER:
        yield "delay", min(job.ready_at, now)
    waits = "wait"
    for attempt in job.attempts:
        if requeued and attempt.ended_at is not None and attempt.ended_at > requeued - CLOCKS_DIFFER:
            yield "dead", requeued
            waits, requeued = "wait", None
        if attempt.started_at is not None and attempt.ended_at is not None:
            yield waits, attempt.started_at
            yield "failed", attempt.ended_at
            waits = "retry"
    if requeued:
        yield "dead", requeued
        waits = "wait"
    yield from _last_marks(job, now, waits)


def _last_marks(job: JobDetails, now: datetime, waits: str) -> Iterator[tuple[str, datetime]]:
    """Those after the last failure."""
    if job.state is JobState.RUNNING and job.claimed_at is not None:
        yield waits, job.claimed_at
        yield "run", now
    elif job.state is JobState.SUCCEEDED and job.finished_at is not None:
        yield "retry" if job.attempts else "before", job.finished_at - timedelta(seconds=min(job.seconds or 0, LONGEST))
        yield "run", job.finished_at
    elif not job.state.is_final:
        yield "delay" if job.state is JobState.SCHEDULED else waits, now


def _svg(parts: list[Part], total: float, label: str) -> str:
    room = WIDTH - LEAST * len(parts)
    left = 0.0
    drawn = []
    for part in parts:
        width = LEAST + room * part.seconds / total
        title = f"{_TITLES[part.kind]} {format_duration(part.seconds)}"
        drawn.append((f"rtq-part-{part.kind}", f"{left:.1f}", f"{width:.1f}", HEIGHT, title))
        left += width
    rects = format_html_join("", '<rect class="{}" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>', drawn)
    return format_html(
        '<svg class="rtq-time-bar" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}</svg>',
        int(WIDTH),
        HEIGHT,
        label,
        rects,
    )
