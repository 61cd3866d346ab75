"""The list of tasks with their metrics, and a form to enqueue a job."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.admin import permissions
from django_rtq.admin.action_log import log_action
from django_rtq.admin.display.texts import schedule_text
from django_rtq.admin.forms import EnqueueForm
from django_rtq.admin.pages.page_admin import PageAdmin, Route
from django_rtq.exceptions import InvalidTask, PayloadError
from django_rtq.formatting import EMPTY_VALUE, format_duration, format_number, format_percent
from django_rtq.inspector.inspector import get_inspector
from django_rtq.inspector.metrics import TaskMetrics
from django_rtq.tasks.registry import all_tasks
from django_rtq.tasks.task import Task

METRICS_HOURS = 24


class TaskAdmin(PageAdmin):
    """The pages of the tasks."""

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.tasks),
            Route("<str:name>/enqueue/", "enqueue", self.enqueue, permissions.ENQUEUE, "BOTH"),
        ]

    def tasks(self, request: HttpRequest) -> HttpResponse:
        """Every task that is registered in this process or has metrics."""
        metrics, known = get_inspector().metrics.tasks(METRICS_HOURS), all_tasks()
        names = sorted({*known, *metrics})
        context = {
            "title": _("Tasks"),
            "rows": [_row(name, known.get(name), metrics.get(name)) for name in names],
            "span_text": _("Metrics of the last %(hours)d hours.") % {"hours": METRICS_HOURS},
        }
        return self.render(request, "tasks.html", context)

    def enqueue(self, request: HttpRequest, name: str) -> HttpResponse:
        """Enqueue a job with arguments from a form."""
        task = all_tasks().get(name)
        if task is None or task.internal:
            raise Http404
        form = EnqueueForm(request.POST or None, task=name)
        if request.method == "POST" and form.is_valid():
            try:
                job = task.using(**form.options).delay(*form.cleaned_data["args"], **form.cleaned_data["kwargs"])
            except (TypeError, PayloadError, InvalidTask) as error:
                form.add_error(None, str(error))
            except Exception as error:  # noqa: BLE001 - the task's function for its client may raise anything
                form.add_error(None, f"{type(error).__name__}: {error}")
            else:
                log_action(
                    request, models.RegisteredTask(name=name[:255]), _("Enqueued by hand: job %(id)s.") % {"id": job.id}
                )
                messages.success(request, _("Job %(id)s is enqueued.") % {"id": job.id})
                return HttpResponseRedirect(self.url("job_change", job.id, query={"queue": job.queue_name}))
        context = {
            "title": _("Enqueue %(task)s") % {"task": name.rpartition(".")[2]},
            "name": name,
            "signature": f"{name}{inspect.signature(task.func)}",
            "description": inspect.getdoc(task.func) or "",
            "form": form,
            "breadcrumbs": [{"url": self.url("registeredtask_changelist"), "title": _("Tasks")}],
        }
        return self.render(request, "enqueue.html", context, is_form=True)


def _row(name: str, task: Task[Any, Any] | None, metrics: TaskMetrics | None) -> dict[str, Any]:
    return {
        "name": name,
        "is_known": task is not None,  # not the task itself: a template would call it
        "may_be_enqueued": task is not None and not task.internal,
        "queue": task.queue if task else "",
        "options": ", ".join(_options(task)) if task else "",
        "cells": _cells(metrics),
    }


def _options(task: Task[Any, Any]) -> Iterator[str]:
    """The options that differ from the defaults."""
    for name in ("priority", "max_attempts", "max_crashes", "time_limit", "expires", "result_ttl"):
        value = getattr(task, name)
        if value:
            yield f"{name}={value}"
    if callable(task.client):
        yield "client=…"
    elif task.client:
        yield f"client={task.client}"
    if task.aliases:
        yield f"aliases={', '.join(task.aliases)}"
    for schedule in task.schedule:
        yield schedule_text(schedule)


def _cells(metrics: TaskMetrics | None) -> list[dict[str, str]]:
    if metrics is None:
        return [{"text": EMPTY_VALUE, "css": "rtq-zero"}] * 7
    return [
        {"text": format_number(metrics.done)},
        {"text": format_number(metrics.failed), "css": "rtq-is-bad" if metrics.failed else "rtq-zero"},
        {"text": format_percent(metrics.failure_rate)},
        {"text": format_duration(metrics.run_p50)},
        {"text": format_duration(metrics.run_p95)},
        {"text": format_duration(metrics.wait_p50)},
        {"text": format_duration(metrics.wait_p95)},
    ]
