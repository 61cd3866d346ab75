"""Jobs: tables of those in one state, by page; those that run, by worker; one timeline; dead letters by error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.admin import query_params
from django_rtq.console.admin.display.texts import LIST_LABELS
from django_rtq.console.admin.filters import filter_query, read_filter
from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.incident_options import incident_options
from django_rtq.console.incidents.workers import is_hung, time_limit_of
from django_rtq.console.inspector.actions import VERBS
from django_rtq.console.inspector.details import QueueDetails, RunningJob, WorkerDetails
from django_rtq.console.inspector.jobs.dead_letters import DeadGroup
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.jobs.job_page import LISTS, JobPage
from django_rtq.console.redaction import redacted
from django_rtq.console.render.column import STATE_LABELS
from django_rtq.console.sanitize import arguments_text, clean_text, short_id
from django_rtq.core.jobs.details import CLOCKS_DIFFER, JobDetails
from django_rtq.core.jobs.job import JobState

PAGE_SIZE = 25  # jobs
MAX_REFRESHED = 2000  # jobs that an automatic refresh may search through

_ALL_URLS = {
    "requeue": "deadletter_requeue_all",
    "discard": "deadletter_discard_all",
    "run_now": "job_bulk_run_now_all",
    "cancel": "job_bulk_cancel_all",
}

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
    filter: JobFilter
    cursor: str  # "": the first page
    before: int = 0  # jobs on the pages before; other jobs may have come and gone since

    @classmethod
    def read(cls, request: HttpRequest, queue: str) -> JobTable:
        """From the query string. Invalid values are ignored."""
        return cls(
            queue=queue,
            state=query_params.get_choice(request.GET, "state", LISTS, "queued"),
            filter=read_filter(request.GET),
            cursor=(cursor := query_params.get_text(request.GET, "after", query_params.MAX_CURSOR)),
            before=query_params.get_int(request.GET, "before", 0) if cursor else 0,
        )

    def url(self, url: PageUrl, **changed: object) -> str:
        """The URL of this table, with some parameters changed."""
        return url("queue_change", self.queue, query={"state": self.state, **filter_query(self.filter), **changed})

    def context(self, page: JobPage, details: QueueDetails, url: PageUrl) -> dict[str, Any]:
        """The context of the template."""
        verbs, given = VERBS[self.state], filter_query(self.filter)
        bulk = {"queue": self.queue, **({} if self.state == "dead" else {"state": self.state}), **given}
        return {
            "state": self.state,
            "tabs": [_tab(name, details, self, url) for name in LISTS],
            "given": given,
            "asks_error": self.state in ("retrying", "dead"),
            "is_filtered": bool(self.filter),
            "unfiltered_url": url("queue_change", self.queue, query={"state": self.state}),
            "listing_title": _("Jobs: %(state)s") % {"state": LIST_LABELS[self.state]},
            "when_title": _TIME_TITLES[self.state],
            "what_title": _DETAIL_TITLES.get(self.state, ""),
            "job_rows": [_row(redacted(job), self.state, url) for job in page.jobs],
            "ticks": bool(verbs),
            "verbs": verbs,
            "all_urls": {verb: url(_ALL_URLS[verb], query=bulk) for verb in verbs},
            "found_text": _found_text(self, page, getattr(details, self.state)),
            "next_url": self.url(url, after=page.next_cursor, before=self.before + len(page.jobs))
            if page.next_cursor
            else "",
            "first_url": self.url(url),
            "is_later": bool(self.cursor),
            "is_costly": bool(self.filter) and page.searched > MAX_REFRESHED,
            "here": self.url(url, after=self.cursor, before=self.before or ""),
            **_empty_texts(self, page),
        }


def _tab(name: str, details: QueueDetails, table: JobTable, url: PageUrl) -> dict[str, Any]:
    return {
        "title": str(LIST_LABELS[name]),
        "count": getattr(details, name),
        "url": url("queue_change", table.queue, query={"state": name, **filter_query(table.filter)}),
        "is_current": name == table.state,
    }


def _row(job: JobDetails, state: str, url: PageUrl) -> dict[str, Any]:
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
        "arguments": arguments_text(job),
        "short_id": short_id(job.id),
        "url": url("job_change", job.id, query={"queue": job.queue}),
        "at": at,
        "what": what,
        "is_error": state in ("retrying", "dead"),
    }


def search_row(job: JobDetails, url: PageUrl) -> dict[str, Any]:
    """A row for a redacted job in any state."""
    state = "finished" if job.state.is_final and job.state is not JobState.DEAD else str(job.state)
    row = _row(job, state, url)
    return {**row, "list": state, "state": STATE_LABELS[job.state], "what": "" if state == "finished" else row["what"]}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of the timeline of a job."""

    title: str
    at: datetime | None = None
    text: str = ""
    css: str = ""
    is_now: bool = False


def steps(job: JobDetails) -> list[Step]:
    """Enqueued, ready, each stored failure, requeued, and the current state."""
    return [*_beginning(job), *_failures(job), _present(job)]


def _beginning(job: JobDetails) -> Iterator[Step]:
    if job.made_at is not None:
        yield Step(title=_("enqueued"), at=job.made_at)
    if not job.requeued_at and job.ready_at and job.made_at and job.ready_at - job.made_at > CLOCKS_DIFFER:
        yield Step(title=_("scheduled start"), at=job.ready_at)


def _failures(job: JobDetails) -> Iterator[Step]:
    requeued = job.requeued_at
    for attempt in job.attempts:
        if requeued and attempt.ended_at is not None and attempt.ended_at > requeued - CLOCKS_DIFFER:
            yield Step(title=_("requeued"), at=requeued)
            requeued = None
        yield Step(
            title=_("attempt %(number)s failed") % {"number": attempt.number or "?"},
            at=attempt.ended_at,
            text=clean_text(attempt.error_class, 200).rpartition(".")[2],
            css="rtq-bad",
        )
    if requeued:
        yield Step(title=_("requeued"), at=requeued)


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
    return Step(title=title, at=at, text=text, css=css, is_now=True)


def group_row(queue: str, group: DeadGroup, url: PageUrl) -> dict[str, Any]:
    """A row of the template `_groups.html`."""
    # Without both names a filter would match other groups as well.
    is_known = bool(group.task and group.error_class)
    query = {"queue": queue, "task": group.task, "error": group.error_class}
    return {
        "queue": queue,
        "group": group,
        "shards": ", ".join(map(str, sorted(group.shards))),
        "message": group.message,
        "url": url("queue_change", queue, query={"state": "dead", **query, "queue": ""}),
        "task_url": url("registeredtask_change", group.task) if group.task else "",
        "requeue_url": url("deadletter_requeue_all", query=query) if is_known else "",
        "discard_url": url("deadletter_discard_all", query=query) if is_known else "",
    }


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


def running_by_worker(workers: Sequence[WorkerDetails]) -> list[WorkerJobs]:
    """Workers with running jobs, in the order of busiest_first()."""
    return [
        WorkerJobs(
            worker=worker,
            is_lost=worker.is_lost,
            text=_lease_text(worker),
            rows=[_running_row(job) for job in sorted(worker.running, key=lambda job: -job.seconds)],
        )
        for worker in busiest_first(workers)
    ]


def _lease_text(worker: WorkerDetails) -> str:
    left = worker.lease_left_seconds
    text = _("lease expired %(seconds)d s ago") if left < 0 else _("lease expires in %(seconds)d s")
    text %= {"seconds": abs(left)}
    return text if worker.shard is None else f"{_('Shard %(number)d') % {'number': worker.shard}}, {text}"


def _running_row(job: RunningJob) -> dict[str, Any]:
    return {"job": job, "short_id": short_id(job.id), "warning": running_job_warning(job)}


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
