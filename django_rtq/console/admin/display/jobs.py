"""Jobs: tables of those in one state, by page; those that run, by worker; one timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console import permissions
from django_rtq.console.admin import query_params
from django_rtq.console.admin.filters import chips, filter_query
from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.formatting import EMPTY_VALUE, LIST_LABELS, STATE_LABELS, format_duration, format_number
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.workers import is_hung, time_limit_of
from django_rtq.console.reading.actions import VERBS
from django_rtq.console.reading.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.reading.jobs.job_page import LISTS, JobPage
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import WAITING, Selection
from django_rtq.console.redaction import is_unknown, redacted
from django_rtq.console.render.column import ago_html
from django_rtq.console.sanitize import arguments_text, clean_text
from django_rtq.console.search import read_query
from django_rtq.core.jobs.details import CLOCKS_DIFFER, JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks.registry import is_internal

May = Callable[[str], bool]  # whether somebody has a permission

PAGE_SIZE = 25  # jobs
MAX_REFRESHED = 2000  # jobs that an automatic refresh may search through

_TIME_TITLES = {
    "queued": gettext_lazy("Waiting since"),
    "scheduled": gettext_lazy("Due"),
    "running": gettext_lazy("Started"),
    "retrying": gettext_lazy("Next attempt"),
    "dead": gettext_lazy("Died"),
    "finished": gettext_lazy("Finished"),
}
_DETAIL_TITLES = {
    "running": gettext_lazy("Worker"),
    "retrying": gettext_lazy("Error"),
    "dead": gettext_lazy("Error"),
    "finished": gettext_lazy("Outcome"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTable:
    """The request for a page of jobs."""

    queue: str
    state: str
    text: str  # the query
    filter: JobFilter
    cursor: str  # "": the first page
    before: int = 0  # jobs on the pages before; other jobs may have come and gone since

    @classmethod
    def read(cls, readers: Readers, request: HttpRequest, queue: str) -> JobTable:
        """From the query string. Invalid values are ignored, but for those of the query: raises QueryError."""
        return cls(
            queue=queue,
            state=query_params.get_choice(request.GET, "state", LISTS, "queued"),
            text=(text := request.GET.get("q", "").strip()),
            filter=read_query(readers, text).filter,
            cursor=(cursor := query_params.get_text(request.GET, "after", query_params.MAX_CURSOR)),
            before=query_params.get_int(request.GET, "before", 0) if cursor else 0,
        )

    def url(self, url: PageUrl, **changed: object) -> str:
        """The URL of this table, with some parameters changed."""
        return url("queue_change", self.queue, query={"state": self.state, "q": self.text, **changed})

    @property
    def _whole_text(self) -> str:
        state = "" if self.filter.outcome else f"state:{self.state} "
        return clean_text(f"queue:{self.queue} {state}{self.text}".strip())

    def context(self, page: JobPage, details: QueueDetails, url: PageUrl, may: May) -> dict[str, Any]:
        """The context of the template."""
        verbs, here = VERBS[self.state], self.url(url, after=self.cursor, before=self.before or "")
        jobs = [redacted(job) for job in page.jobs]
        fields = ("queue", "state", *(() if self.state in ("retrying", "dead") else ("class",)))
        matching = {"q": str(Selection(queues=[self.queue], states=[self.state], filter=self.filter))}
        return {
            "state": self.state,
            "tabs": [_tab(name, details, self, url) for name in LISTS],
            "search_text": self._whole_text,
            **chips(self.text, jobs, lambda text: self.url(url, q=text), fixed=fields),
            "listing_title": _("Jobs: %(state)s") % {"state": LIST_LABELS[self.state]},
            "when_title": _TIME_TITLES[self.state],
            "what_title": _DETAIL_TITLES.get(self.state, ""),
            "job_rows": [job_row(job, self.state, url, may, here) for job in jobs],
            "ticks": bool(verbs),
            "verbs": verbs,
            # Redis does not know what is hidden from people, and would find it by a text.
            "all_urls": {verb: url(f"job_bulk_{verb}", query=matching) for verb in verbs if not self.filter.text},
            "found_text": _found_text(self, page, getattr(details, self.state)),
            "next_url": self.url(url, after=page.next_cursor, before=self.before + len(page.jobs))
            if page.next_cursor
            else "",
            "first_url": self.url(url),
            "is_later": bool(self.cursor),
            "is_costly": bool(self.filter) and page.searched > MAX_REFRESHED,
            "here": here,
            **_empty_texts(self, page),
        }


def _tab(name: str, details: QueueDetails, table: JobTable, url: PageUrl) -> dict[str, Any]:
    return {
        "title": str(LIST_LABELS[name]),
        "count": getattr(details, name),
        "url": table.url(url, state=name),
        "is_current": name == table.state,
    }


def job_row(job: JobDetails, state: str, url: PageUrl, may: May, here: str) -> dict[str, Any]:
    """A row of the template `_jobs.html`, for a redacted job. `state`: its list."""
    kind, message = job.newest_error
    error = f"{kind.rpartition('.')[2]}: {message}" if kind else message
    at, what = {
        "queued": (job.ready_at, ""),
        "scheduled": (job.due_at, ""),
        "running": (job.claimed_at, job.worker),
        "retrying": (job.due_at, error),
        "dead": (job.died_at, error),
        "finished": (job.finished_at, STATE_LABELS[job.state]),
    }[state]
    return {
        "job": job,
        "list": state,
        "state": STATE_LABELS[job.state],
        "arguments": arguments_text(job),
        "url": url("job_change", job.id, query={"queue": job.queue}),
        "when": _held() if job.is_held else EMPTY_VALUE if at is None else ago_html(at),
        "what": what,
        "is_error": state in ("retrying", "dead"),
        "actions": job_actions(job, url, may, here),
    }


def _held() -> str:
    return format_html('<span class="rtq-state rtq-state-paused">{}</span>', _("task paused"))


def job_actions(job: JobDetails, url: PageUrl, may: May, here: str = "") -> list[dict[str, Any]]:
    """What somebody may do with a job now: links to pages that ask, and buttons. `here`: where they lead back to."""
    is_waiting, is_dead, is_running = (job.state in states for states in (WAITING, ("dead",), ("running",)))
    may_end, is_ours = is_waiting or (is_running and not job.is_stopping), is_internal(job.task)
    may_again = job.state.is_final and not is_dead and job.has_call and not is_unknown(job.task) and not is_ours
    query = {"queue": job.queue, "next": here}
    rows = (
        (is_dead, permissions.REQUEUE, "requeue", _("Requeue"), "rtq-main", False),
        (is_dead, permissions.REQUEUE, "requeue", _("Requeue in another queue …"), "", True),
        (is_dead and not is_ours, permissions.EDIT, "edit", _("Requeue with other arguments"), "", True),
        (is_dead, permissions.DISCARD, "discard", _("Discard …"), "rtq-danger", True),
        (job.event, permissions.EDIT, "send", _("Send an event …"), "rtq-main", True),
        (is_waiting and job.due_at, permissions.REQUEUE, "run_now", _("Run now"), "rtq-main", False),
        (may_again, permissions.ENQUEUE, "again", _("Enqueue again …"), "", True),
        (may_end, permissions.CANCEL, "cancel", _("Cancel …"), "rtq-danger", True),
        (is_running, permissions.CANCEL, "terminate", _("Terminate …"), "rtq-danger", True),
    )  # fmt: skip
    return [
        {
            "url": url("registeredtask_enqueue", job.task, query={"job": job.id, "queue": job.queue})
            if name == "again"
            else url(f"job_{name}", job.id, query=query if asks else {}),
            "label": label,
            "css": css,
            "asks": asks,
        }
        for applies, permission, name, label, css, asks in rows
        if applies and may(permission)
    ]


def _found_text(table: JobTable, page: JobPage, total: int) -> str:
    first, last = format_number(table.before + 1), format_number(table.before + len(page.jobs))
    if table.filter:
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


def _empty_texts(table: JobTable, page: JobPage) -> dict[str, str]:
    if page.next_cursor:
        return {"empty_title": _("No match yet."), "empty_text": _searched_text(page)}
    if table.filter:
        return {"empty_title": _("No matching jobs."), "empty_text": _("Change the filter or choose another state.")}
    if table.cursor:
        return {"empty_title": _("No more jobs."), "empty_text": ""}
    return {"empty_title": str(_EMPTY_TITLES[table.state]), "empty_text": str(_EMPTY_TEXTS.get(table.state, ""))}


_EMPTY_TITLES = {
    "queued": gettext_lazy("No queued jobs."),
    "scheduled": gettext_lazy("No scheduled jobs."),
    "running": gettext_lazy("No running jobs."),
    "retrying": gettext_lazy("No jobs waiting for a retry."),
    "dead": gettext_lazy("No dead letters."),
    "finished": gettext_lazy("No finished jobs."),
}
_EMPTY_TEXTS = {
    "queued": gettext_lazy("All enqueued jobs have started or are scheduled for later."),
    "dead": gettext_lazy("All failed jobs are being retried or have been dealt with."),
    "finished": gettext_lazy("Finished jobs stay here until their results expire (RESULT_TTL)."),
}


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
    wanted = JobFilter(task=job.task, client=job.client, error_class=newest, since=since, until=until)
    return url("queue_change", job.queue, query={"state": str(job.state), **filter_query(wanted)})


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
    if job.attempt and (job.state is JobState.RUNNING or job.finished_at):
        parts.insert(0, _("Attempt %(number)s") % {"number": job.attempt})
    return Event(title, at, parts, {"dead": "rtq-bad", "succeeded": "rtq-good"}.get(job.state, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJobs:
    """The running jobs of one worker."""

    worker: WorkerDetails
    is_lost: bool
    text: str
    rows: list[dict[str, Any]]


def busiest_first(workers: Sequence[WorkerDetails]) -> list[WorkerDetails]:
    """Workers with running jobs: lost workers first, then by the longest-running job."""
    busy = [worker for worker in workers if worker.running]
    return sorted(busy, key=lambda worker: (not worker.is_lost, -max(job.seconds for job in worker.running)))


def running_by_worker(workers: Sequence[WorkerDetails], url: PageUrl, may: May, here: str) -> list[WorkerJobs]:
    """Workers with running jobs, in the order of busiest_first()."""
    return [
        WorkerJobs(
            worker=worker,
            is_lost=worker.is_lost,
            text=_lease_text(worker),
            rows=[_running_row(job, url, may, here) for job in sorted(worker.running, key=lambda job: -job.seconds)],
        )
        for worker in busiest_first(workers)
    ]


def _lease_text(worker: WorkerDetails) -> str:
    left = worker.lease_left_seconds
    text = _("lease expired %(seconds)d s ago") if left < 0 else _("lease expires in %(seconds)d s")
    text %= {"seconds": abs(left)}
    return text if worker.shard is None else f"{_('Shard %(number)d') % {'number': worker.shard}}, {text}"


def _running_row(running: RunningJob, url: PageUrl, may: May, here: str) -> dict[str, Any]:
    same = ("id", "queue", "task", "client", "attempt", "progress", "is_stopping", "claimed_at")
    job = JobDetails(state=JobState.RUNNING, **{name: getattr(running, name) for name in same})
    row = job_row(job, "running", url, may, here)
    return {**row, "when": format_duration(running.seconds), "warning": running_job_warning(running)}


def running_job_warning(job: RunningJob) -> str:
    """Why a running job looks hung. "" if it does not."""
    if not is_hung(job):
        return ""
    limit = time_limit_of(job)
    if limit is not None and job.seconds > limit:
        return _("over its time limit of %(limit)g s") % {"limit": limit}
    if job.usual_seconds is not None:
        return _("much longer than usual (%(usual)s)") % {"usual": format_duration(job.usual_seconds)}
    longest = incident_options().running_seconds
    return _("running for over %(duration)s without a time limit") % {"duration": format_duration(longest)}
