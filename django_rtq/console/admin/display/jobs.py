"""Jobs: those of a queue in one state, by page; the timeline of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_rtq.console.admin import query_params
from django_rtq.console.admin.filters import chips
from django_rtq.console.formatting import LIST_LABELS, STATE_LABELS, format_duration, format_number
from django_rtq.console.reading.actions import VERBS
from django_rtq.console.reading.details import QueueDetails
from django_rtq.console.reading.jobs.walk import JobPage
from django_rtq.console.reading.members import read_query
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import LISTS, Selection
from django_rtq.console.render.column import PageUrl
from django_rtq.console.render.html import Viewer, tables
from django_rtq.console.render.sheet import Empty
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.jobs import JOB_LISTS, JOBS
from django_rtq.core.jobs.details import CLOCKS_DIFFER, JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState

MAX_REFRESHED = 2000  # jobs that an automatic refresh may search through


class JobTable:
    """The page of jobs that a query string asks for. Wrong values are ignored, but a wrong query raises QueryError."""

    def __init__(self, readers: Readers, request: HttpRequest, queue: str) -> None:
        self.queue, data = queue, request.GET
        self.state = query_params.get_choice(data, "state", LISTS, "queued")
        self.text = data.get("q", "").strip()
        self.filter = read_query(readers, self.text).anywhere
        self.cursor = query_params.get_text(data, "after", query_params.MAX_CURSOR)  # "": the first page
        #: Jobs on the pages before; other jobs may have come and gone since.
        self.before = query_params.get_int(data, "before", 0) if self.cursor else 0

    def url(self, url: PageUrl, **changed: object) -> str:
        """The URL of this table, with some parameters changed."""
        return url("queue_change", self.queue, query={"state": self.state, "q": self.text, **changed})

    def context(self, page: JobPage, details: QueueDetails, viewer: Viewer) -> dict[str, Any]:
        """The context of the template."""
        verbs, jobs, url = VERBS[self.state], page.jobs, viewer.url
        state = "" if self.filter.outcome else f"state:{self.state} "
        fields = ("queue", "state", *(() if self.state in ("retrying", "dead") else ("class",)))
        matching = {"q": str(replace(self.filter, queues=[self.queue], states=[self.state]))}
        next_url = self.url(url, after=page.next_cursor, before=self.before + len(jobs)) if page.next_cursor else ""
        return {
            "state": self.state,
            "tabs": [
                (title, getattr(details, name), self.url(url, state=name), name == self.state)
                for name, title in LIST_LABELS.items()
            ],
            "search_text": clean_text(f"queue:{self.queue} {state}{self.text}".strip()),
            **chips(self.text, jobs, lambda text: self.url(url, q=text), fixed=fields),
            "tables": tables(
                JOBS,
                jobs,
                replace(viewer, tick=_("Job %(id)s") if verbs else ""),
                label=LIST_LABELS[self.state],
                titles={**JOB_LISTS[self.state].titles, "queue": None},
            ),
            "verbs": verbs,
            # Redis does not know what is hidden from people, and would find it by a text.
            "all_urls": {verb: url(f"job_bulk_{verb}", query=matching) for verb in verbs if not self.filter.text},
            "range_text": _range_text(self, page, getattr(details, self.state)),
            "next_url": next_url,
            "first_url": self.url(url) if self.cursor else "",
            "is_costly": self.filter.is_filtered and page.searched > MAX_REFRESHED,
            "empty": _if_empty(self, page),
        }


def _range_text(table: JobTable, page: JobPage, total: int) -> str:
    first, last = format_number(table.before + 1), format_number(table.before + len(page.jobs))
    if table.filter.is_filtered:
        text = f"{first}–{last}."  # noqa: RUF001 - an en dash between numbers
        return text if page.is_complete else f"{text} {_searched_text(page)}"
    whole = format_number(max(total, table.before + len(page.jobs)))
    return _("%(first)s–%(last)s of %(number)s") % {  # noqa: RUF001 - an en dash between numbers
        "first": first,
        "last": last,
        "number": whole,
    }


def _searched_text(page: JobPage) -> str:
    return _("%(count)s searched so far; there are more.") % {"count": format_number(page.searched)}


def _if_empty(table: JobTable, page: JobPage) -> Empty:
    if page.next_cursor:
        return Empty(_("No match yet."), _searched_text(page))
    if table.filter.is_filtered:
        return Empty(_("No matching jobs."), _("Change the filter or choose another state."))
    return Empty(_("No more jobs.")) if table.cursor else JOB_LISTS[table.state].empty


class Event(NamedTuple):
    """One point of the timeline of a job."""

    title: str
    at: datetime | None = None
    parts: Sequence[str] = ()  # how long it waited and ran, and where
    css: str = ""
    failure: Attempt | None = None
    call: str = ""  # that others had part in the call
    url: str = ""  # the list of these


def timeline(job: JobDetails, requeued_by: str = "", url: PageUrl | None = None) -> list[Event]:
    """The current state, each stored failure, when it was requeued, ready and enqueued: the newest first."""
    return [*_life(job, requeued_by, url), _present(job)][::-1]


def _neighbours_url(job: JobDetails, url: PageUrl) -> str:
    """The list of the jobs that failed in the same call as this one, which have died or are due at the same time."""
    at, newest = job.died_at or job.due_at, job.newest_error[0]
    if at is None or not newest:
        return ""
    since, until = (at + timedelta(seconds=seconds) for seconds in (-1, 1))
    wanted = Selection(task=job.task, client=job.client, error_class=newest, since=since, before=until)
    return url("queue_change", job.queue, query={"state": str(job.state), "q": str(wanted)})


def _life(job: JobDetails, requeued_by: str, url: PageUrl | None) -> Iterator[Event]:
    requeued, ready = job.requeued_at, job.made_at
    if job.made_at is not None:
        yield Event(_("enqueued"), job.made_at)
    is_due = job.state is JobState.SCHEDULED  # which the present says; it may have run steps and wait for an event
    if not (is_due or requeued) and job.ready_at and job.made_at and job.ready_at - job.made_at > CLOCKS_DIFFER:
        ready = job.ready_at
        yield Event(_("scheduled start"), ready)
    again = Event(_("requeued"), requeued, [_("by %(user)s") % {"user": requeued_by}] if requeued_by else ())
    for attempt in job.attempts:
        if requeued and attempt.ended_at is not None and attempt.ended_at > requeued - CLOCKS_DIFFER:
            yield again
            requeued, ready = None, requeued
        elif attempt.number and attempt.number > 1 and attempt == job.attempts[0]:
            ready = None  # those before are not kept
        title = _("attempt %(number)s failed") % {"number": attempt.number or "?"}
        parts = _times(ready, attempt.started_at, attempt.seconds, attempt.worker)
        if attempt.version:
            parts.append(_("%(what)s: %(text)s") % {"what": _("Version"), "text": clean_text(attempt.version, 100)})
        call = _("call of %(number)s") % {"number": attempt.together} if attempt.together > 1 else ""
        others = _neighbours_url(job, url) if call and url and attempt == job.attempts[-1] else ""
        yield Event(title, attempt.ended_at, parts, "rtq-bad", attempt, call, others)
        ready = attempt.ended_at
    if requeued:
        yield again


def _times(ready: datetime | None, start: datetime | None, seconds: float | None, worker: str) -> list[str]:
    """How long a run waited and took, and which worker had it."""
    waited = (start - ready).total_seconds() if start and ready else 0
    return [
        *([_("waited %(duration)s") % {"duration": format_duration(waited)}] if waited > 0 else ()),
        *([_("ran %(duration)s") % {"duration": format_duration(seconds)}] if seconds else ()),
        *([clean_text(worker, 60)] if worker else ()),
    ]


def _present(job: JobDetails) -> Event:
    title, at = str(STATE_LABELS[job.state]), job.finished_at
    ready = job.attempts[-1].ended_at if job.attempts else job.ready_at or job.made_at
    parts = _times(max(filter(None, (ready, job.requeued_at)), default=None), job.claimed_at, job.seconds, job.worker)
    if job.state is JobState.RUNNING:
        at = job.claimed_at
    elif job.state in (JobState.SCHEDULED, JobState.RETRYING):
        due = _("next attempt due") if job.state is JobState.RETRYING else _("due")
        return Event(_("its task is paused") if job.is_held else due, job.due_at, css="rtq-later")
    elif job.state is JobState.DEAD:
        at = job.died_at
    if job.finished_at and job.made_at and job.seconds is not None and not job.claimed_at:  # all that an outcome holds
        start = job.finished_at - job.made_at - timedelta(seconds=job.seconds)
        text = _("started %(duration)s after it was enqueued")
        parts.insert(0, text % {"duration": format_duration(max(0.0, start.total_seconds()))})
    if job.attempt and (job.state is JobState.RUNNING or job.finished_at):
        parts.insert(0, _("Attempt %(number)s") % {"number": job.attempt})
    return Event(title, at, parts, {"dead": "rtq-bad", "succeeded": "rtq-good"}.get(job.state, ""))
