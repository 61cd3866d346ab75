"""The list of tasks with their metrics, the page of one task, and a form to enqueue a job."""

from __future__ import annotations

import inspect
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.console import permissions
from django_rtq.console.acting.verb import Target
from django_rtq.console.admin import query_params
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.forms import EnqueueForm
from django_rtq.console.admin.navigation import entry_url
from django_rtq.console.admin.pages.page_admin import PageAdmin, Route, place_of
from django_rtq.console.admin.time_charts import Line, Steps, outcome_areas, time_chart
from django_rtq.console.formatting import format_duration
from django_rtq.console.reading.task_details import TaskDetails
from django_rtq.console.redaction import signature_of
from django_rtq.console.render.html import Table, beside_name, buttons, figures, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.jobs import GROUPS
from django_rtq.console.subjects.schedules import SCHEDULES
from django_rtq.console.subjects.tasks import (
    OF_TASK,
    QUEUES_OF_TASK,
    TASKS,
    VERSIONS,
    WholeTask,
    in_queues,
    pauses_by_task,
)
from django_rtq.core.tasks.registry import all_tasks
from django_rtq.exceptions import ConfigurationError

MAX_GROUPS = 20  # of dead letters of a task, the latest
MAX_QUEUES_SHOWN = 10  # in the table of jobs, unless all are asked for


class TaskAdmin(PageAdmin):
    """The pages of the tasks."""

    sheet = TASKS

    def routes(self) -> list[Route]:
        return [
            *super().routes(),
            Route("<str:name>/enqueue/", "enqueue", self.enqueue, permissions.ENQUEUE, "BOTH"),
        ]

    def page(self, request: HttpRequest, name: str) -> HttpResponse:
        """One task: its runs, its jobs in all queues, its dead letters. A task that nobody knows is not found."""
        row, viewer = _find(request, name), self.viewer(request)
        code, details, shown = row.code, row.details, in_queues(row)
        most = len(shown) if request.GET.get("queues") == "all" else MAX_QUEUES_SHOWN
        context = {
            "title": _("Task %(name)s") % {"name": clean_text(name, 300).rpartition(".")[2]},
            "breadcrumbs": [{"url": self.url("registeredtask_changelist"), "title": _("Tasks")}],
            "task_name": name,
            "beside_name": beside_name(TASKS, row, viewer),
            "buttons": buttons(TASKS, row, viewer, OF_TASK),
            "may_be_enqueued": code is not None and not row.is_internal,
            "signature": signature_of(code.func) if code else "",
            "description": inspect.getdoc(code.func) or "" if code else "",
            "span_title": _("Last 48 hours"),
            "totals": figures(TASKS, row, viewer),
            "tables": tables(QUEUES_OF_TASK, shown[:most], viewer),
            "other_queues": len(shown[most:]),
            "is_cut": any(queue.cut for queue in details.queues),
            "group_tables": tables(GROUPS, details.groups[:MAX_GROUPS], viewer, titles={"task": None}),
            "older_groups": max(0, len(details.groups) - MAX_GROUPS),
            "charts": _charts(details),
            "version_tables": tables(VERSIONS, details.versions, viewer),
            "schedule_tables": self._schedules(request, name),
        }
        return self.render(request, "task.html", context)

    def _schedules(self, request: HttpRequest, name: str) -> list[Table]:
        try:
            rows = SCHEDULES.read(place_of(request).readers, lambda status: status.task == name)
        except ConfigurationError:  # `manage.py check` says it, and so does the overview
            return []
        may_list = bool(entry_url(request, self.admin_site, "schedule"))

        def url(page: str, *args: str, **options: Any) -> str:
            return self.url(page, *args, **options) if may_list or page != "schedule_changelist" else ""

        return tables(SCHEDULES, rows, self.viewer(request, url), titles={"task": None})

    def target(self, request: HttpRequest, name: str) -> Target:
        """The task, in one queue or in all."""
        row, data = _find(request, name), query_params.given(request)
        queue = query_params.get_queue_name(data) if "queue" in data else None
        if row.is_internal or (queue is not None and queue not in place_of(request).readers.queues.names()):
            raise Http404
        return super().target(request, name)._replace(queue=queue)

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
            except Exception as error:  # noqa: BLE001 - the task's function for its client may raise anything
                form.refuse(error)
            else:
                log_action(request, self.entry(Target(name)), _("Enqueued by hand: job %(id)s.") % {"id": job.id})
                messages.success(request, _("Job %(id)s is enqueued.") % {"id": job.id})
                return HttpResponseRedirect(self.url("job_change", job.id, query={"queue": job.queue_name}))
        context = {
            "title": _("Enqueue %(task)s") % {"task": name.rpartition(".")[2]},
            "signature": f"{name}{signature_of(task.func)}",
            "description": inspect.getdoc(task.func) or "",
            "form": form,
            "verb": _("Enqueue"),
            "is_harmless": True,
            "back": self.url("registeredtask_changelist"),
            "breadcrumbs": [{"url": self.url("registeredtask_changelist"), "title": _("Tasks")}],
        }
        return self.render(request, "enqueue.html", context, is_form=True)

    def _job_again(self, request: HttpRequest, name: str) -> dict[str, Any]:
        """What the form starts with if it is about a job that is to run again. Raises JobNotFound."""
        job_id = request.GET.get("job", "")
        if not job_id:
            return {}
        job = place_of(request).readers.find(job_id, query_params.get_queue_name(request.GET) or None)
        if job.task != name or not job.has_call:
            raise Http404
        return {"args": job.args, "kwargs": job.kwargs, "queue_name": job.queue, "client": job.client}


def _charts(task: TaskDetails) -> list[dict[str, Any]]:
    """Runs by outcome, and percentiles of run and wait times."""
    steps = Steps(begins_at=task.begins_at, seconds=3600, number=len(task.hours))
    done, failed, crashed = zip(*((hour.done, hour.failed, hour.crashed) for hour in task.hours), strict=True)
    areas = outcome_areas(done, failed, crashed)
    shown = [time_chart("runs", _("Runs per hour"), steps, areas, deploys=task.deploys)]
    for kind, title in (("run", _("Percentiles of run times")), ("wait", _("Percentiles of waits"))):
        lines = [
            Line(name, f"rtq-line-{name}", [getattr(in_hour, f"{kind}_{name}") for in_hour in task.hours])
            for name in ("p50", "p95")
        ]
        shown.append(time_chart(f"{kind}-times", title, steps, lines, deploys=task.deploys, write=format_duration))
    return shown


def _find(request: HttpRequest, name: str) -> WholeTask:
    """A task. Raises Http404 if nobody knows it."""
    if "\0" in name:  # PostgreSQL could not store it in the log
        raise Http404
    details = place_of(request).readers.tasks.get(name)
    pauses = pauses_by_task(in_queue.queue for in_queue in details.queues).get(name, ())
    row = WholeTask(task=name, code=all_tasks().get(name), metrics=details.total, pauses=pauses, details=details)
    if row.code is None and not details.is_known and not row.paused_in:
        raise Http404
    return row
