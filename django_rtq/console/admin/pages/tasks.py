"""The list of tasks with their metrics, the page of one task, and a form to enqueue a job."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.console import permissions
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.display.jobs import group_row
from django_rtq.console.admin.display.paged_list import paged_context
from django_rtq.console.admin.display.tasks import (
    MAX_QUEUES_NAMED,
    MAX_QUEUES_SHOWN,
    PausedTask,
    TaskListParams,
    charts,
    listed_tasks,
    metrics_cells,
    paused_tasks,
    queue_rows,
    shown_queues,
    state_titles,
    task_options,
    totals,
)
from django_rtq.console.admin.display.texts import no_task_jobs_text, task_consequence, task_question
from django_rtq.console.admin.forms import EnqueueForm
from django_rtq.console.admin.navigation import schedules_url
from django_rtq.console.admin.pages.bulk.pages import AllJobs, BulkPages
from django_rtq.console.admin.pages.page_admin import Route
from django_rtq.console.formatting import names_text
from django_rtq.console.inspector.actions import Verb
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.jobs.job_filter import JobFilter
from django_rtq.console.inspector.metrics.reader import MAX_HOURS, TaskMetrics
from django_rtq.console.inspector.task_details import TaskDetails
from django_rtq.console.redaction import signature_of
from django_rtq.console.render.html import Table, Viewer, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.schedules import SCHEDULES
from django_rtq.core.tasks.registry import all_tasks
from django_rtq.core.tasks.task import Task
from django_rtq.exceptions import ConfigurationError, InvalidTask, PayloadError, TooManyPausedTasks

METRICS_HOURS = 24
MAX_GROUPS = 20  # of dead letters of a task, the latest


class TaskAdmin(BulkPages):
    """The pages of the tasks."""

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.tasks),
            Route("<str:name>/enqueue/", "enqueue", self.enqueue, permissions.ENQUEUE, "BOTH"),
            Route("<str:name>/pause/", "pause", self.pause, permissions.PAUSE_TASK, "POST"),
            Route("<str:name>/resume/", "resume", self.resume, permissions.PAUSE_TASK, "POST"),
            Route("<str:name>/cancel/", "cancel", partial(self.sweep, verb="cancel"), permissions.CANCEL, "BOTH"),
            Route("<str:name>/requeue/", "requeue", partial(self.sweep, verb="requeue"), permissions.REQUEUE, "BOTH"),
            Route("<str:name>/", "change", self.task),
        ]

    def tasks(self, request: HttpRequest) -> HttpResponse:
        """The tasks that are registered in this process or have metrics: sorted, searched and paged."""
        metrics, queues = get_inspector().tasks.all(METRICS_HOURS)
        registered, paused, params = all_tasks(), paused_tasks(queues), TaskListParams.read(request.GET)
        internal = {name for name, task in registered.items() if task.internal}
        names = listed_tasks(params, {*registered, *metrics, *paused}, internal, metrics)
        shown = params.of(names)
        context = {
            "title": _("Tasks"),
            "here": request.get_full_path(),
            "rows": [_row(name, registered.get(name), metrics.get(name), paused.get(name)) for name in shown],
            "has_tasks": bool(registered or metrics or paused),
            "matching": len(names),
            "span_text": _("Metrics of the last %(hours)d hours.") % {"hours": METRICS_HOURS},
            **paged_context(
                params, len(shown), len(names), lambda query: self.url("registeredtask_changelist", query=query)
            ),
        }
        return self.render(request, "tasks.html", context)

    def task(self, request: HttpRequest, name: str) -> HttpResponse:
        """One task: its runs, its jobs in all queues, its dead letters. A task that nobody knows is not found."""
        details, task, paused = _find(name)
        shown = shown_queues(details, task.queue if task else "")
        is_all = query_params.get_choice(request.GET, "queues", ("all",), "") == "all"
        most = len(shown) if is_all else MAX_QUEUES_SHOWN
        context = {
            "title": _("Task %(name)s") % {"name": clean_text(name, 300).rpartition(".")[2]},
            "breadcrumbs": [{"url": self.url("registeredtask_changelist"), "title": _("Tasks")}],
            "task_name": name,
            **_code_facts(task),
            "span_title": _("Last 48 hours"),
            "totals": totals(details.total),
            "paused": paused,
            "is_paused": paused is not None and len(paused.queues) == len(details.queues),
            "state_titles": state_titles(),
            "queue_rows": queue_rows(details, shown[:most], self.url),
            "other_queues": len(shown[most:]),
            "is_cut": any(queue.cut for queue in details.queues),
            "has_waiting": any(queue.waiting or queue.is_cut for queue in details.queues),
            "has_dead": any(queue.dead or "dead" in queue.cut for queue in details.queues),
            "groups": [group_row(queue, group, self.url) for queue, group in details.groups[:MAX_GROUPS]],
            "older_groups": max(0, len(details.groups) - MAX_GROUPS),
            "charts": charts(details),
            "schedule_tables": self._schedules(request, name),
        }
        return self.render(request, "task.html", context)

    def _schedules(self, request: HttpRequest, name: str) -> list[Table]:
        try:
            rows = SCHEDULES.of_task(get_inspector(), name)
        except ConfigurationError:  # `manage.py check` says it, and so does the overview
            return []
        may_list = bool(schedules_url(request, self.admin_site))

        def url(page: str, *args: str, **options: Any) -> str:
            return self.url(page, *args, **options) if may_list or page != "schedule_changelist" else ""

        return tables(SCHEDULES, rows, Viewer(url=url, may=request.user.has_perm), leave_out=("task",))

    def pause(self, request: HttpRequest, name: str) -> HttpResponse:
        """Let the jobs of a task wait, in one queue or in all."""
        _found, task, _paused = _find(name)
        if task is not None and task.internal:
            raise Http404
        queue, by = _queue_of(request), request.user.get_username()
        is_refused = False
        try:
            done = get_inspector().task_pauses.pause_task(name, queue, by=by)
        except TooManyPausedTasks as error:
            messages.error(request, str(error))
            done, is_refused = error.paused, True
        if done:
            paused = _("Paused in %(queues)s.") % {"queues": names_text(done, MAX_QUEUES_NAMED)}
            log_action(request, _entry(name), paused)
            text = _("Task %(name)s is paused in %(queues)s. Its running jobs continue, and no new jobs start.")
            messages.success(request, text % {"name": _shown(name), "queues": names_text(done, MAX_QUEUES_NAMED)})
        elif not is_refused:
            messages.warning(request, _("Task %(name)s was already paused.") % {"name": _shown(name)})
        return self._back(request, name)

    def resume(self, request: HttpRequest, name: str) -> HttpResponse:
        """Start the jobs of a paused task again, in one queue or in all."""
        done = get_inspector().task_pauses.resume_task(name, _queue_of(request))
        queues = {"queues": names_text(done, MAX_QUEUES_NAMED)}
        if done:
            log_action(request, _entry(name), _("Resumed in %(queues)s.") % queues)
            text = _("Task %(name)s was resumed in %(queues)s.")
            messages.success(request, text % {"name": _shown(name), **queues})
        else:
            messages.warning(request, _("Task %(name)s is not paused.") % {"name": _shown(name)})
        return self._back(request, name)

    def _back(self, request: HttpRequest, name: str) -> HttpResponse:
        return HttpResponseRedirect(query_params.get_next_url(request, self.url("registeredtask_change", name)))

    def enqueue(self, request: HttpRequest, name: str) -> HttpResponse:
        """Enqueue a job with arguments from a form."""
        task = all_tasks().get(name)
        if task is None or task.internal:
            raise Http404
        again = self._job_again(request, name)
        form = EnqueueForm(request.POST or None, task=name, **again)
        if request.method == "POST" and form.is_valid():
            try:
                job = task.using(**form.options).delay(*form.cleaned_data["args"], **form.cleaned_data["kwargs"])
            except (TypeError, PayloadError, InvalidTask) as error:
                form.add_error(None, str(error))
            except Exception as error:  # noqa: BLE001 - the task's function for its client may raise anything
                form.add_error(None, f"{type(error).__name__}: {error}")
            else:
                log_action(request, _entry(name), _("Enqueued by hand: job %(id)s.") % {"id": job.id})
                messages.success(request, _("Job %(id)s is enqueued.") % {"id": job.id})
                return HttpResponseRedirect(self.url("job_change", job.id, query={"queue": job.queue_name}))
        context = {
            "title": _("Enqueue %(task)s") % {"task": name.rpartition(".")[2]},
            "name": name,
            "signature": f"{name}{signature_of(task.func)}",
            "description": inspect.getdoc(task.func) or "",
            "form": form,
            "job": query_params.get_text(request.GET, "job"),
            "queue": query_params.get_queue_name(request.GET),
            "breadcrumbs": [{"url": self.url("registeredtask_changelist"), "title": _("Tasks")}],
        }
        return self.render(request, "enqueue.html", context, is_form=True)

    def _job_again(self, request: HttpRequest, name: str) -> dict[str, Any]:
        """What the form starts with if it is about a job that is to run again. Raises JobNotFound."""
        job_id = request.GET.get("job", "")
        if not job_id:
            return {}
        job = get_inspector().find(job_id, query_params.get_queue_name(request.GET) or None)
        if job.task != name or not job.has_call:
            raise Http404
        return {"args": job.args, "kwargs": job.kwargs, "queue_name": job.queue, "client": job.client}

    def sweep(self, request: HttpRequest, name: str, *, verb: Verb) -> HttpResponse:
        """Cancel the waiting jobs of a task in all queues, or requeue its dead letters, after confirmation."""
        shown, back = clean_text(name, 300), self.url("registeredtask_change", name)
        titles = {
            "cancel": _("Cancel the jobs of task %(name)s"),
            "requeue": _("Requeue the dead letters of task %(name)s"),
        }
        jobs = AllJobs(
            wanted=JobFilter(task=f"={name}"),
            log=partial(self._log_sweep, request, name),
            title=titles[verb] % {"name": shown.rpartition(".")[2]},
            question=lambda counted: task_question(verb, counted.count, shown, is_cut=bool(counted.cut)),
            consequence=task_consequence(verb),
            nothing=no_task_jobs_text(verb),
            action=self.url(f"registeredtask_{verb}", name),
            breadcrumbs=[
                {"url": self.url("registeredtask_changelist"), "title": _("Tasks")},
                {"url": back, "title": shown},
            ],
            back=back,
        )
        return self.act_on_all(request, verb, jobs)

    # -- helpers

    def _log_sweep(self, request: HttpRequest, name: str, text: str) -> None:
        log_action(request, _entry(name), text)


def _find(name: str) -> tuple[TaskDetails, Task[Any, Any] | None, PausedTask | None]:
    """A task: its jobs and runs, itself if it is registered, and its pause. Raises Http404 if nobody knows it."""
    if "\0" in name:  # PostgreSQL could not store it in the log
        raise Http404
    details = get_inspector().tasks.get(name, MAX_HOURS)
    task = all_tasks().get(name)
    paused = paused_tasks([in_queue.queue for in_queue in details.queues]).get(name)
    if task is None and not details.is_known and paused is None:
        raise Http404
    return details, task, paused


def _code_facts(task: Task[Any, Any] | None) -> dict[str, Any]:
    """What the page says of the function. None: the task is not registered here."""
    return {
        "is_registered": task is not None,
        "may_be_enqueued": task is not None and not task.internal,
        "may_be_paused": task is None or not task.internal,
        "signature": signature_of(task.func) if task else "",
        "description": inspect.getdoc(task.func) or "" if task else "",
        "options": ", ".join(task_options(task)) if task else "",
    }


def _queue_of(request: HttpRequest) -> str | None:
    """The queue of a form; None: all queues. Raises Http404."""
    if "queue" not in request.POST:
        return None
    if (queue := query_params.get_queue_name(request.POST)) not in get_inspector().queues.names():
        raise Http404
    return queue


def _entry(name: str) -> models.RegisteredTask:
    return models.RegisteredTask(name=name[:255])


def _shown(name: str) -> str:
    return clean_text(name, 300)


def _row(
    name: str, task: Task[Any, Any] | None, metrics: TaskMetrics | None, paused: PausedTask | None
) -> dict[str, Any]:
    return {
        "name": name,
        "is_known": task is not None,  # not the task itself: a template would call it
        "queue": task.queue if task else "",
        "options": ", ".join(task_options(task)) if task else "",
        "cells": metrics_cells(metrics),
        "paused": paused,
        "may_be_paused": task is None or not task.internal,
    }
