"""The timeline of a job: what happened to it, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from django_rtq.admin.display.sanitize import clean_text
from django_rtq.admin.display.texts import STATE_LABELS
from django_rtq.inspector.details import JobDetails
from django_rtq.jobs.job import JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of the timeline."""

    title: str
    at: datetime | None = None
    text: str = ""
    css: str = ""
    is_now: bool = False


def steps(job: JobDetails) -> list[Step]:
    """Enqueued, ready, each stored failure, and the current state."""
    return [*_beginning(job), *_failures(job), _present(job)]


def _beginning(job: JobDetails) -> Iterator[Step]:
    if job.made_at is not None:
        yield Step(title=_("enqueued"), at=job.made_at)
    if job.ready_at and job.made_at and (job.ready_at - job.made_at).total_seconds() > 1:
        yield Step(title=_("scheduled start"), at=job.ready_at)


def _failures(job: JobDetails) -> Iterator[Step]:
    for attempt in job.attempts:
        yield Step(
            title=_("attempt %(number)s failed") % {"number": attempt.number or "?"},
            at=attempt.ended_at,
            text=clean_text(attempt.error_class, 200).rpartition(".")[2],
            css="rtq-bad",
        )


def _present(job: JobDetails) -> Step:
    title, css = str(STATE_LABELS[job.state]), ""
    at, text = None, ""
    if job.state is JobState.RUNNING:
        at = job.claimed_at
        text = _("attempt %(number)s, on %(worker)s") % {
            "number": job.attempt,
            "worker": clean_text(job.worker, 60),
        }
        if job.is_stopping:
            text = _("%(attempt)s; asked to stop") % {"attempt": text}
    elif job.state in (JobState.SCHEDULED, JobState.RETRYING):
        at, css = job.due_at, "rtq-later"
        title = _("next attempt due") if job.state is JobState.RETRYING else _("due")
        title = _("its task is paused") if job.is_held else title
    elif job.state is JobState.DEAD:
        at, css = job.died_at, "rtq-bad"
    elif job.state is JobState.SUCCEEDED:
        at, css = job.finished_at, "rtq-good"
    elif job.is_dropped:
        at, text = job.finished_at, _("dropped: its queue was full, and a later job took its place")
    return Step(title=title, at=at, text=text, css=css, is_now=True)
