"""The pages of workflows: a list, one with its graph, cancel it."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Target
from django_rtq.console.admin.display.graph import MOST, graph
from django_rtq.console.admin.pages.page_admin import PageAdmin, place_of
from django_rtq.console.reading.members import WorkflowStep
from django_rtq.console.reading.selection import Selection
from django_rtq.console.redaction import redacted
from django_rtq.console.render.html import Table, Viewer, buttons, cell_html, tables
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.jobs import JOB_LISTS, JOBS
from django_rtq.console.subjects.workflows import STEPS, WORKFLOWS, dead_url
from django_rtq.core.jobs.job import moment
from django_rtq.workflows.handle import Workflow, WorkflowProgress

MOST_DEAD = 10  # jobs that the page of a workflow shows


class WorkflowAdmin(PageAdmin):
    """The list of workflows, and a page for each."""

    sheet = WORKFLOWS

    def page(self, request: HttpRequest, name: str) -> HttpResponse:
        """Its steps, as a graph and as a table."""
        progress, viewer = _progress(request, name), self.viewer(request)
        steps = sorted(STEPS.of(progress), key=lambda row: not row.step.dead)
        context = {
            "title": _("Workflow %(name)s") % {"name": clean_text(progress.name, 100)},
            "breadcrumbs": [{"url": self.url("workflow_changelist"), "title": _("Workflows")}],
            "flow": progress,
            "state": cell_html(WORKFLOWS, "state", progress, self.url),
            "jobs_done": cell_html(WORKFLOWS, "jobs_done", progress, self.url),
            "made_at": moment(progress.made_ms),
            "ended_at": moment(progress.ended_ms),
            "graph": graph(progress.steps, lambda step: dead_url(WorkflowStep(progress, step), self.url))
            if progress.steps
            else "",
            "more_steps": max(0, len(progress.steps) - MOST),
            "tables": tables(STEPS, steps, viewer),
            "dead_tables": self._dead_jobs(request, progress, viewer),
            "jobs_url": self.url("job_search", query={"q": f"workflow:{name}"}),
            "buttons": buttons(WORKFLOWS, progress, viewer),
        }
        return self.render(request, "workflow.html", context)

    def target(self, request: HttpRequest, name: str) -> Target:
        return super().target(request, name)._replace(title=_progress(request, name).name)

    def _dead_jobs(self, request: HttpRequest, progress: WorkflowProgress, viewer: Viewer) -> Sequence[Table]:
        """A table of the newest dead jobs."""
        lists = [(queue, "dead") for queue in dict.fromkeys(step.queue for step in progress.steps if step.dead)]
        wanted = Selection(workflow=progress.id)
        walk = place_of(request).readers.search(lists, wanted, shown=redacted)
        found = walk.page("", MOST_DEAD).jobs if lists else ()
        return tables(JOBS, found, viewer, label=_("Dead letters"), titles=JOB_LISTS["dead"].titles)


def _progress(request: HttpRequest, name: str) -> WorkflowProgress:
    """Raises WorkflowNotFound."""
    return Workflow(name, backend=place_of(request).readers.place).progress()
