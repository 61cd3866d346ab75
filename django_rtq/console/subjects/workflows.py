"""Workflows, those in which something happened last first, and the steps of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.output import facts
from django_rtq.console.reading.members import WorkflowStep, recent_in
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection
from django_rtq.console.render.column import MOMENT, NUMBER, PROGRESS, TASK, Column, PageUrl, State, states
from django_rtq.console.render.sheet import Empty, Filter, Found, Sheet, Wanted
from django_rtq.core.jobs.job import moment
from django_rtq.workflows import workflow_store
from django_rtq.workflows.handle import WorkflowProgress, WorkflowState

STATES = {
    "waiting": State(_("waiting"), "waiting"),
    "started": State(_("running"), "running"),
    "running": State(_("running"), "running"),
    "blocked": State(_("blocked"), "blocked"),
    "succeeded": State(_("succeeded"), "succeeded"),
    "failed": State(_("failed"), "failed"),
    "skipped": State(_("never starts"), "skipped"),
    "cancelled": State(_("cancelled"), "cancelled"),
}
_STEP = ("number", "task", "queue", "size", "done", "dead", "gone", "after")


class Workflows(Sheet[WorkflowProgress]):
    """The list of workflows."""

    model, title, key = "workflow", _("Workflows"), "id"
    columns = (
        Column("name", _("Name"), link=lambda flow, url: url("workflow_change", flow.id)),
        Column("id", _("ID"), under="name"),
        Column("state", _("State"), kind=states(STATES), under="name"),
        Column(
            "client",
            _("Client"),
            link=lambda flow, url: url("client_change", query={"client": flow.client}),
        ),
        Column("jobs_done", _("Jobs done"), lambda flow: (flow.done, flow.size), PROGRESS),
        Column(
            "dead", _("Dead"), lambda flow: sum(step.dead for step in flow.steps), NUMBER, css=lambda flow: "rtq-is-bad"
        ),
        Column("made_at", _("Made"), lambda flow: moment(flow.made_ms), MOMENT),
    )
    actions = (ACTIONS["requeue_workflow"], ACTIONS["cancel_workflow"])
    filters = {str(state): Filter(STATES[state].title) for state in WorkflowState}
    empty = Empty(
        _("There is no workflow."),
        _("Workflows are jobs that wait for others. They are made in code:"),
        'with workflow("month-end") as flow: ...',
    )

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        """Redis knows the order, of each state, too."""
        rows = recent_in(readers, self.per_page, start=self.places(wanted).start, state=wanted.state)
        known = _number(readers, "")
        return Found(rows, _number(readers, wanted.state) if wanted.state else known, known)

    def facts(self, row: WorkflowProgress) -> Mapping[str, Any]:
        return {
            "key": row.key,
            "ended_at": moment(row.ended_ms),
            "steps": [{**facts(each.step, _STEP), "state": each.state} for each in STEPS.of(row)],
        }


def _number(readers: Readers, state: str) -> int:
    return sum(readers.every(lambda one: workflow_store(one.broker).count(state)))


def dead_url(row: WorkflowStep, url: PageUrl) -> str:
    """Where the dead jobs of a step are found."""
    wanted = Selection(states=["dead"], task=f"={row.step.task}", workflow=row.workflow.id)
    return url("job_search", query={"q": str(wanted)})


class Steps(Sheet[WorkflowStep]):
    """The steps of a workflow."""

    model, title = "step", _("Steps")
    columns = (
        Column(
            "task",
            _("Task"),
            attrgetter("step.task"),
            TASK,
            link=lambda row, url: url("registeredtask_change", row.step.task),
            hint=lambda row: row.step.task,
        ),
        Column("step", _("Step"), lambda row: str(row.step.number), under="task"),
        Column("state", _("State"), kind=states(STATES), under="task"),
        Column(
            "queue", _("Queue"), attrgetter("step.queue"), link=lambda row, url: url("queue_change", row.step.queue)
        ),
        Column("jobs_done", _("Done"), lambda row: (row.step.done, row.step.size), PROGRESS),
        Column(
            "dead",
            _("Dead"),
            attrgetter("step.dead"),
            NUMBER,
            link=dead_url,
            css=lambda row: "rtq-is-bad",
        ),
        Column("gone", _("Failed for good"), attrgetter("step.gone"), NUMBER),
        Column("after", _("After steps"), lambda row: ", ".join(map(str, row.step.after)) or None),
        Column("reasons", "", lambda row: row.reasons or None, under="after"),
    )

    def of(self, flow: WorkflowProgress) -> Sequence[WorkflowStep]:
        """Those of a workflow, in their order."""
        return [WorkflowStep(flow, step) for step in flow.steps]


WORKFLOWS, STEPS = Workflows(), Steps()
