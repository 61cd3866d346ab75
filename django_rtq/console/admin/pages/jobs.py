"""Pages and actions of a job, the list of running jobs, dead letters by error, and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.contrib import messages
from django.db import DatabaseError
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.console import permissions
from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.verb import Target, Verb
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import who_requeued
from django_rtq.console.admin.forms import CallForm, EventForm
from django_rtq.console.admin.pages.bulk import BulkPages, why_unchanged
from django_rtq.console.admin.pages.job_lists import JobSearch
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.formatting import STATE_LABELS, format_duration
from django_rtq.console.reading.jobs.waiting_reason import waiting_reason
from django_rtq.console.reading.members import step_of
from django_rtq.console.reading.selection import Selection
from django_rtq.console.redaction import redacted
from django_rtq.console.render.column import PageUrl
from django_rtq.console.render.html import buttons, cell_html
from django_rtq.console.sanitize import clean_text, named_arguments
from django_rtq.console.subjects.jobs import GROUPS, JOBS, OUTBOX, RUNNING, written_text
from django_rtq.console.subjects.queues import MEMORY
from django_rtq.console.subjects.workers import WORKERS
from django_rtq.core.jobs.details import CLOCKS_DIFFER, JobDetails
from django_rtq.core.jobs.failure import Attempt
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks.registry import known_task


class JobAdmin(BulkPages):
    """The pages of jobs, and actions on many. The list has those that run, grouped by worker."""

    sheet = RUNNING

    def routes(self) -> list[Route]:
        """The first ones cannot collide with an id, which has 32 hex digits."""
        return [
            Route("search/", "search", self.search),
            Route("outbox/", "outbox", self.outbox),
            Route("memory/", "memory", partial(self.list, sheet=MEMORY)),
            *self.bulk_routes(),
            *super().routes(),
        ]

    # -- pages

    def search(self, request: HttpRequest) -> HttpResponse:
        """Jobs of all queues and states that match a query. The id of a job opens its page."""
        search = JobSearch(request)
        if address := search.elsewhere(self.url):
            return HttpResponseRedirect(address)
        context = search.context(self.viewer(request))
        return self.render(request, "search.html", context, is_form=True)

    def outbox(self, request: HttpRequest) -> HttpResponse:
        """What waits in the outbox, with the error of each."""
        try:
            return self.list(request, OUTBOX)
        except DatabaseError as error:
            return self._render_problem(request, _("The outbox"), str(error), status=503)

    def page(self, request: HttpRequest, name: str) -> HttpResponse:
        """The page of a job."""
        may_edit = request.user.has_perm(permissions.EDIT)
        readers, queue = place_of(request).readers, query_params.get_queue_name(request.GET)
        details, position = readers.find_with_position(name, queue or None)
        job, task = redacted(details, shows_unknown=may_edit), known_task(details.task)
        context = {
            "title": clean_text(job.task, 300).rpartition(".")[2] or _("Job %(id)s") % {"id": clean_text(job.id, 40)},
            "breadcrumbs": [{"url": self.url("queue_change", job.queue), "title": job.queue}],
            "job": job,
            "state": str(STATE_LABELS[job.state]),
            "actions": buttons(JOBS, job, replace(self.viewer(request), here="")),
            "progress": cell_html(JOBS, "progress", job, self.url) if job.progress else "",
            "timeline": timeline(job, who_requeued(job), self.url),
            "waiting_reason": clean_text(waiting_reason(job, position)),
            "member": step_of(job.id, readers.place),
            "arguments": named_arguments(job),
            "are_hidden": bool(job.args) and task is None and not may_edit,
            "is_known": task is not None,
            "exactly_once": written_text(job),
            "batch": task and task.batch,
        }
        return self.render(request, "job.html", context)

    # -- actions

    def act(self, request: HttpRequest, name: str = "", *, verb: Verb) -> HttpResponse:
        """Requeue a dead letter with other arguments, or send an event, if the job waits for that of the form."""
        target = self.target(request, name)
        job: JobDetails = target.row
        if verb.applies(job) and request.POST.get("event", job.event) == job.event:
            return self.act_on(request, verb, target)
        messages.warning(request, why_unchanged(place_of(request).readers, job.id, job.queue))
        return HttpResponseRedirect(query_params.get_next_url(request, self.home(target)))

    def target(self, request: HttpRequest, name: str) -> Target:
        readers, queue = place_of(request).readers, query_params.get_queue_name(query_params.given(request))
        job = readers.find(name, queue or None)
        return Target(job.id, queue=job.queue, row=job)

    def form_of(self, request: HttpRequest, verb: Verb, target: Target) -> Form:
        data, job = request.POST or None, target.row
        if verb.name == "send":
            return EventForm(data, event=job.event)
        return CallForm(data, task=job.task, args=job.args, kwargs=job.kwargs)

    def ask_context(self, request: HttpRequest, verb: Verb, target: Target) -> dict[str, Any]:
        job = target.row
        return {
            "breadcrumbs": [
                {"url": self.url("queue_change", job.queue), "title": job.queue},
                {"url": self.home(target), "title": clean_text(job.id, 40)},
            ],
            "facts": [(_("Task"), clean_text(job.task, 300)), (_("Queue"), job.queue)],
        }

    def home(self, target: Target) -> str:
        return self.url("job_change", target.name, query={"queue": target.queue})


class DeadLetterAdmin(PageAdmin):
    """The page of dead letters: groups by error."""

    sheet = GROUPS


class WorkerAdmin(PageAdmin):
    """The page of the workers."""

    sheet = WORKERS

    def routes(self) -> list[Route]:
        wake = ACTIONS["wake_workers"]
        return [*super().routes(), Route("wake-all/", wake.name, partial(self.act, verb=wake), wake.permission, "POST")]

    def list_context(self, request: HttpRequest, rows: Any) -> Mapping[str, Any]:
        return {"buttons": buttons(WORKERS, rows, self.viewer(request), [ACTIONS["wake_workers"]])}

    def target(self, request: HttpRequest, name: str) -> Target:
        return super().target(request, name or "*")


# -- what became of a job


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
    wanted = Selection(task=f"={job.task}", client=job.client, error_class=newest, since=since, before=until)
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
        parts = _times(ready, attempt.started_at, attempt.seconds, attempt)
        call = _("call of %(number)s") % {"number": attempt.together} if attempt.together > 1 else ""
        others = _neighbours_url(job, url) if call and url and attempt == job.attempts[-1] else ""
        yield Event(title, attempt.ended_at, parts, "rtq-bad", attempt, call, others)
        ready = attempt.ended_at
    if requeued:
        yield again


def _times(
    ready: datetime | None, start: datetime | None, seconds: float | None, run: Attempt | JobDetails
) -> list[str]:
    """How long a run waited and took, and which worker had it, of which version."""
    waited = (start - ready).total_seconds() if start and ready else 0
    version = _("%(what)s: %(text)s") % {"what": _("Version"), "text": clean_text(run.version, 100)}
    return [
        *([_("waited %(duration)s") % {"duration": format_duration(waited)}] if waited > 0 else ()),
        *([_("ran %(duration)s") % {"duration": format_duration(seconds)}] if seconds else ()),
        *([clean_text(run.worker, 60)] if run.worker else ()),
        *([version] if run.version else ()),
    ]


def _present(job: JobDetails) -> Event:
    title, at = str(STATE_LABELS[job.state]), job.finished_at
    ready = job.attempts[-1].ended_at if job.attempts else job.ready_at or job.made_at
    parts = _times(max(filter(None, (ready, job.requeued_at)), default=None), job.claimed_at, job.seconds, job)
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
