"""The pages of workflows: a list, one with its graph, cancel it."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq import models
from django_rtq.console import permissions
from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.admin.action_log import log_action
from django_rtq.console.admin.display.charts.graph import MOST, graph
from django_rtq.console.admin.display.jobs import job_row
from django_rtq.console.admin.pages.page_admin import Route, place_of
from django_rtq.console.admin.pages.sheet_admin import SheetAdmin
from django_rtq.console.reading.jobs.job_filter import JobFilter
from django_rtq.console.redaction import redacted
from django_rtq.console.render.html import action_html, cell_html, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.workflows import STEPS, WORKFLOWS, StepRow, dead_of
from django_rtq.core.jobs.job import moment
from django_rtq.exceptions import WorkflowNotFound
from django_rtq.workflows.handle import StepProgress, Workflow, WorkflowProgress

MOST_DEAD = 10  # jobs that the page of a workflow shows
CANCELLED_IN_REQUEST = 2_000  # jobs; heartbeats cancel the others


class WorkflowAdmin(SheetAdmin):
    """The list of workflows, and a page for each."""

    sheet = WORKFLOWS

    def routes(self) -> list[Route]:
        return [
            Route("", "changelist", self.list),
            Route("<str:workflow_id>/", "change", self.workflow),
            Route("<str:workflow_id>/cancel/", "cancel", self.cancel, permissions.CANCEL, "BOTH"),
        ]

    def workflow(self, request: HttpRequest, workflow_id: str) -> HttpResponse:
        """Its steps, as a graph and as a table."""
        try:
            progress = _flow(request, workflow_id).progress()
        except WorkflowNotFound:
            return self._not_found(request, workflow_id)
        steps = sorted(STEPS.of(progress), key=lambda row: not row.step.dead)
        verb, viewer = ACTIONS["requeue_workflow"], self.viewer(request)
        is_shown = verb.applies(progress) and viewer.may(verb.permission)
        context = {
            "title": _("Workflow %(name)s") % {"name": clean_text(progress.name, 100)},
            "breadcrumbs": [{"url": self.url("workflow_changelist"), "title": _("Workflows")}],
            "flow": progress,
            "state": cell_html(WORKFLOWS, "state", progress, self.url),
            "jobs_done": cell_html(WORKFLOWS, "jobs_done", progress, self.url),
            "made_at": moment(progress.made_ms),
            "ended_at": moment(progress.ended_ms),
            "graph": graph(progress.steps, partial(self._dead_url, progress)) if progress.steps else "",
            "more_steps": max(0, len(progress.steps) - MOST),
            "tables": tables(STEPS, steps, viewer),
            **self._dead_jobs(request, progress),
            "jobs_url": self.url("job_search", query={"q": f"workflow:{workflow_id}"}),
            "requeue": action_html(verb, "workflow", workflow_id, viewer, is_button=True) if is_shown else "",
        }
        return self.render(request, "workflow.html", context)

    def cancel(self, request: HttpRequest, workflow_id: str) -> HttpResponse:
        """End it, after confirmation."""
        flow = _flow(request, workflow_id)
        try:
            progress = flow.progress()
            is_cancelled = request.method == "POST" and flow.cancel(most_jobs=CANCELLED_IN_REQUEST)
        except WorkflowNotFound:
            return self._not_found(request, workflow_id)
        name = clean_text(progress.name, 100)
        if request.method == "POST":
            if is_cancelled:
                said = _("Cancelled workflow %(name)s.") % {"name": name}
                log_action(request, models.Workflow(name=workflow_id[:255]), said)
                text = _("Workflow %(name)s is cancelled. Running jobs were asked to stop.")
                messages.success(request, text % {"name": name})
            else:
                messages.warning(request, _("Nothing was done: the workflow is over."))
            return HttpResponseRedirect(self.url("workflow_change", workflow_id))
        context = {
            "title": _("Cancel a workflow"),
            "question": _("This cancels workflow %(name)s.") % {"name": name},
            "consequence": _("No step starts any more. Waiting jobs are cancelled, running ones are asked to stop."),
            "action": self.url("workflow_cancel", workflow_id),
            "verb": _("Cancel workflow"),
            "back": self.url("workflow_change", workflow_id),
        }
        return self.render(request, "confirm.html", context, is_form=True)

    def _dead_jobs(self, request: HttpRequest, progress: WorkflowProgress) -> dict[str, Any]:
        """The newest dead jobs, as the template of a list shows them."""
        queues = list(dict.fromkeys(step.queue for step in progress.steps if step.dead))
        lists, wanted, here = (
            [(queue, "dead") for queue in queues],
            JobFilter(workflow=progress.id),
            request.get_full_path(),
        )
        walk = place_of(request).readers.job_list.search(lists, wanted, sizes={}, shown=redacted)
        found = walk.page("", MOST_DEAD).jobs if lists else ()
        return {
            "job_rows": [job_row(redacted(job), "dead", self.url, request.user.has_perm, here) for job in found],
            "is_of_all_queues": True,
            "when_title": _("Died"),
            "what_title": _("Error"),
            "here": here,
        }

    def _dead_url(self, flow: WorkflowProgress, step: StepProgress) -> str:
        return self.url("job_search", query={"q": dead_of(StepRow(flow, step))})

    def _not_found(self, request: HttpRequest, workflow_id: str) -> HttpResponse:
        why = _("Workflow %(id)s was not found. The ID is wrong, or it ended long ago.")
        return self._render_problem(
            request, _("Workflow not found"), why % {"id": clean_text(workflow_id, 40)}, status=404
        )


def _flow(request: HttpRequest, workflow_id: str) -> Workflow:
    return Workflow(workflow_id, backend=place_of(request).readers.place)
