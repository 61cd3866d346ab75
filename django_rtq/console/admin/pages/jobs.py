"""Pages and actions of a job, and the list of running jobs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.console import permissions
from django_rtq.console.acting.jobs import OF_JOB
from django_rtq.console.acting.verb import Verb
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action, who_requeued
from django_rtq.console.admin.display.jobs import timeline
from django_rtq.console.admin.display.texts import cancel_messages
from django_rtq.console.admin.forms import CallForm, EventForm
from django_rtq.console.admin.pages.bulk import (
    BulkPages,
    read_target,
    refuses_target,
    requeue_targets,
    warn_if_nobody_serves,
)
from django_rtq.console.admin.pages.page_admin import Route, place_of
from django_rtq.console.admin.pages.searching import JobSearch
from django_rtq.console.admin.pages.sheet_admin import wanted_in
from django_rtq.console.formatting import STATE_LABELS
from django_rtq.console.nouns import OneJob
from django_rtq.console.reading.jobs.waiting_reason import waiting_reason
from django_rtq.console.reading.jobs.written import written_text
from django_rtq.console.reading.members import membership_of
from django_rtq.console.reading.readers import Readers
from django_rtq.console.redaction import is_unknown, redacted
from django_rtq.console.render.html import buttons, cell_html, listing
from django_rtq.console.render.sheet import Sheet
from django_rtq.console.sanitize import clean_text, named_arguments
from django_rtq.console.subjects.jobs import JOBS, RUNNING
from django_rtq.console.subjects.memory import MEMORY
from django_rtq.console.subjects.outbox import OUTBOX
from django_rtq.core.broker.task_backends import shard_numbers, shard_of
from django_rtq.core.jobs.details import JobDetails
from django_rtq.core.jobs.job import JobState
from django_rtq.core.tasks.registry import is_internal, known_task
from django_rtq.databases.exactly_once import has_committed
from django_rtq.exceptions import JobNotFound, PayloadError, WrongState


class JobAdmin(BulkPages):
    """The pages of jobs, and actions on many."""

    def routes(self) -> list[Route]:
        """The first ones cannot collide with an id, which has 32 hex digits."""
        return [
            Route("", "changelist", self.running),
            Route("search/", "search", self.search),
            Route("outbox/", "outbox", self.outbox),
            Route("memory/", "memory", self.memory),
            *self.bulk_routes(),
            *self._action_routes(),
            Route("<str:job_id>/", "change", self.job),
        ]

    def _action_routes(self) -> Iterator[Route]:
        views = {"requeue": self.requeue, "run_now": self.run_now, "edit": self.edit, "send": self.send}
        for verb in {verb.name: verb for verb in OF_JOB.values() if not verb.page}.values():
            view, method = views.get(verb.name) or partial(self.end, verb=verb), "BOTH" if verb.question else "POST"
            yield Route(f"<str:job_id>/{verb.name.replace('_', '-')}/", verb.name, view, verb.permission, method)

    # -- pages

    def running(self, request: HttpRequest) -> HttpResponse:
        """Running jobs, grouped by worker."""
        return self._listing(request, RUNNING)

    def search(self, request: HttpRequest) -> HttpResponse:
        """Jobs of all queues and states that match a query. The id of a job opens its page."""
        search = JobSearch.read(request)
        job = search.find_by_id()
        if job is not None:
            return HttpResponseRedirect(self._job_url(job.id, job.queue))
        if search.is_in_outbox():
            return HttpResponseRedirect(self.url("job_outbox", query={"search": search.text}))
        if address := search.list_url(self.url):
            return HttpResponseRedirect(address)
        context = search.context(self.viewer(request))
        return self.render(request, "search.html", context, is_form=True)

    def outbox(self, request: HttpRequest) -> HttpResponse:
        """What waits in the outbox, with the error of each."""
        try:
            return self._listing(request, OUTBOX)
        except DatabaseError as error:
            return self._render_problem(request, _("The outbox"), str(error), status=503)

    def memory(self, request: HttpRequest) -> HttpResponse:
        """What takes the memory of Redis."""
        return self._listing(request, MEMORY)

    def _listing(self, request: HttpRequest, sheet: Sheet[Any]) -> HttpResponse:
        """A list of what is no model."""
        wanted = wanted_in(request, sheet)
        found = sheet.find(place_of(request).readers, wanted)
        return self.render(request, "list.html", listing(sheet, found, wanted, self.viewer(request)))

    def job(self, request: HttpRequest, job_id: str) -> HttpResponse:
        """The page of a job."""
        may_edit = request.user.has_perm(permissions.EDIT)
        readers, queue = place_of(request).readers, query_params.get_queue_name(request.GET)
        details, position = readers.find_with_position(job_id, queue or None)
        job = redacted(details, shows_unknown=may_edit)
        context = {
            "title": clean_text(job.task, 300).rpartition(".")[2] or _("Job %(id)s") % {"id": clean_text(job.id, 40)},
            "breadcrumbs": [{"url": self.url("queue_change", job.queue), "title": job.queue}],
            "job": job,
            "shard": shard_of(readers.place) if shard_numbers() else None,
            "state": str(STATE_LABELS[job.state]),
            "actions": buttons(JOBS, job, replace(self.viewer(request), here="")),
            "progress": cell_html(JOBS, "progress", job, self.url) if job.progress else "",
            "timeline": timeline(job, who_requeued(job), self.url),
            "waiting_reason": clean_text(waiting_reason(job, position)),
            "member": membership_of(job.id, readers.place),
            "arguments": named_arguments(job),
            "are_hidden": bool(job.args) and is_unknown(job.task) and not may_edit,
            "is_known": not is_unknown(job.task),
            "exactly_once": written_text(job),
            "batch": getattr(known_task(job.task), "batch", None),
        }
        return self.render(request, "job.html", context)

    # -- actions

    def requeue(self, request: HttpRequest, job_id: str) -> HttpResponse:
        """Requeue a dead letter. The page asks in which queue."""
        job = self._find(request, job_id)
        if job.state is not JobState.DEAD:
            return self._unchanged(request, job_id, job.queue)
        if request.method != "POST" or refuses_target(request):
            targets = requeue_targets(place_of(request).readers, job.queue)
            return self._question(request, job, OF_JOB["move"], targets=targets, verb=_("Requeue"))
        target = read_target(place_of(request).readers, request.POST)
        if not _noun(request, job).requeue(to=target):
            return self._unchanged(request, job_id, job.queue)
        if not target:
            return self._succeeded(request, job, _("Requeued."), _("Job %(id)s was requeued."))
        self._log_job(request, job, _("Requeued in queue %(queue)s.") % {"queue": target})
        text = _("Job %(id)s was requeued in queue %(queue)s.")
        messages.success(request, text % {"id": clean_text(job.id, 60), "queue": target})
        warn_if_nobody_serves(request, target)
        return HttpResponseRedirect(self._job_url(job_id, target))

    def run_now(self, request: HttpRequest, job_id: str) -> HttpResponse:
        """Queue a scheduled or retrying job now."""
        job = self._find(request, job_id)
        try:
            _noun(request, job).run_now()
        except WrongState:
            return self._unchanged(request, job_id, job.queue)
        return self._succeeded(request, job, _("Run now."), _("Job %(id)s is queued now."))

    def end(self, request: HttpRequest, job_id: str, *, verb: Verb) -> HttpResponse:
        """Discard a dead letter, cancel a job or kill the process that runs it, after confirmation."""
        job, terminate = self._find(request, job_id), verb.name == "terminate"
        verbs = (each for each in OF_JOB.values() if each.name == verb.name)
        asked = next((each for each in verbs if each.applies(replace(job, is_stopping=False))), None)
        if asked is None and (request.method != "POST" or terminate):
            return self._unchanged(request, job_id, job.queue)
        if asked and request.method != "POST":
            return self._question(request, job, asked)
        if verb.name == "discard":
            return self._discard(request, job)
        try:
            answer = _noun(request, job).cancel(terminate=terminate)
        except WrongState:
            return self._unchanged(request, job_id, job.queue)
        return self._succeeded(request, job, *cancel_messages(answer, terminate=terminate))

    def _discard(self, request: HttpRequest, job: JobDetails) -> HttpResponse:
        if not _noun(request, job).discard():
            return self._unchanged(request, job.id, job.queue)
        back = self.url("queue_change", job.queue, query={"state": "dead"})
        return self._succeeded(request, job, _("Discarded."), _("Job %(id)s was discarded."), back)

    def edit(self, request: HttpRequest, job_id: str) -> HttpResponse:
        """Requeue a dead letter with other arguments."""
        job = self._find(request, job_id)
        if is_internal(job.task):
            raise PermissionDenied
        if job.state is not JobState.DEAD:
            return self._unchanged(request, job_id, job.queue)
        form = CallForm(request.POST or None, task=job.task, args=job.args, kwargs=job.kwargs)
        try:
            if request.method == "POST" and form.is_valid() and _requeue_changed(_noun(request, job), job, form):
                message = _("Job %(id)s was requeued with the new arguments.")
                return self._succeeded(request, job, _("Requeued with changed arguments."), message)
        except WrongState:
            return self._unchanged(request, job_id, job.queue)
        context = {
            "title": _("Requeue with other arguments"),
            "job": job,
            "form": form,
            "breadcrumbs": self._breadcrumbs(job),
        }
        return self.render(request, "edit.html", context, is_form=True)

    def send(self, request: HttpRequest, job_id: str) -> HttpResponse:
        """Give a job the event for which it waits."""
        job = self._find(request, job_id)
        if not job.event or request.POST.get("event", job.event) != job.event:
            return self._unchanged(request, job_id, job.queue)
        form = EventForm(request.POST or None, event=job.event)
        token = request.POST.get("token", "") or secrets.token_hex(8)
        if request.method == "POST" and form.is_valid():
            try:
                _noun(request, job).send(job.event, form.cleaned_data["value"], token=token)
            except WrongState as error:
                messages.warning(request, _("Nothing was done: %(error)s") % {"error": clean_text(str(error), 300)})
                return HttpResponseRedirect(self._job_url(job_id, job.queue))
            text = _("Sent event %(event)s.") % {"event": clean_text(job.event, 100)}
            return self._succeeded(request, job, text, _("Job %(id)s has got the event."))
        fields = [("event", job.event), ("token", token)]
        return self._question(request, job, OF_JOB["send"], form=form, fields=fields, verb=_("Send"))

    # -- helpers

    def _find(self, request: HttpRequest, job_id: str) -> JobDetails:
        queue = query_params.get_queue_name(query_params.given(request))
        return place_of(request).readers.find(job_id, queue or None)

    def _question(self, request: HttpRequest, job: JobDetails, verb: Verb, /, **more: Any) -> HttpResponse:
        """The page that asks. It changes nothing."""
        next_url = query_params.get_next_url(request, "")
        words = {"id": clean_text(job.id, 60), "event": clean_text(job.event, 100)}
        context = {
            "title": verb.title,
            "question": verb.question % words,
            "consequence": verb.consequence,
            "verb": verb.label,
            "is_harmless": verb.is_harmless,
            "breadcrumbs": self._breadcrumbs(job),
            "facts": [(_("Task"), clean_text(job.task, 300)), (_("Queue"), job.queue)],
            "back": next_url or self._job_url(job.id, job.queue),
            **more,
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _breadcrumbs(self, job: JobDetails) -> list[dict[str, str]]:
        return [
            {"url": self.url("queue_change", job.queue), "title": job.queue},
            {"url": self._job_url(job.id, job.queue), "title": clean_text(job.id, 40)},
        ]

    def _job_url(self, job_id: str, queue: str) -> str:
        return self.url("job_change", job_id, query={"queue": queue})

    def _succeeded(
        self, request: HttpRequest, job: JobDetails, log_message: str, message: str, back: str = ""
    ) -> HttpResponse:
        self._log_job(request, job, log_message)
        messages.success(request, message % {"id": clean_text(job.id, 60)})
        return HttpResponseRedirect(query_params.get_next_url(request, back or self._job_url(job.id, job.queue)))

    def _log_job(self, request: HttpRequest, job: JobDetails, message: str) -> None:
        log_action(request, models.Job(name=job.id), message)

    def _unchanged(self, request: HttpRequest, job_id: str, queue: str) -> HttpResponse:
        """Report the job's current state: someone else acted first, or the job moved on."""
        messages.warning(request, why_unchanged(place_of(request).readers, job_id, queue))
        return HttpResponseRedirect(query_params.get_next_url(request, self._job_url(job_id, queue)))


def _noun(request: HttpRequest, job: JobDetails) -> OneJob:
    return OneJob(place_of(request), job.id, job.queue)


def why_unchanged(readers: Readers, job_id: str, queue: str) -> str:
    """Why an action changed nothing."""
    shown = clean_text(job_id, 60)
    try:
        job = readers.find(job_id, queue)
    except JobNotFound:
        return _("Nothing was done: job %(id)s no longer exists. Someone else may have discarded it.") % {"id": shown}
    return _("Nothing was done: job %(id)s is now %(state)s. Someone else may have acted first.") % {
        "id": shown,
        "state": str(STATE_LABELS[job.state]),
    }


def _requeue_changed(one: OneJob, job: JobDetails, form: CallForm) -> bool:
    """Requeue a dead letter with the arguments of a form. False: the form says why not. Raises WrongState."""
    task = known_task(job.task)
    if task and has_committed(task.exactly_once, job.id):
        text = _(
            "An earlier run of this job has committed, so its function is not called again, and other arguments "
            "would not be used. Requeue it as it is: it succeeds at once. To run the function with other "
            "arguments, enqueue a new job."
        )
        form.add_error(None, text)
        return False
    try:
        one.requeue_changed(form.cleaned_data["args"], form.cleaned_data["kwargs"])
    except PayloadError as error:
        form.add_error(None, str(error))
        return False
    return True
