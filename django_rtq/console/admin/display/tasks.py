"""The page of a task: charts by the hour, and its jobs in each queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.acting.actions import ACTIONS
from django_rtq.console.acting.switches import SWITCHES, everywhere
from django_rtq.console.admin.display.time_charts import Line, Steps, outcome_areas, time_chart
from django_rtq.console.formatting import LIST_LABELS, format_duration, number_text
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.task_details import TaskDetails, TaskInQueue
from django_rtq.console.render.column import Column, Kind, PageUrl, State, states
from django_rtq.console.render.sheet import Sheet
from django_rtq.console.subjects.tasks import TASKS, TaskRow

_OUTCOMES = ("done", "failed", "crashed")


def charts(task: TaskDetails) -> list[dict[str, Any]]:
    """Runs by outcome, and percentiles of run and wait times."""
    steps = Steps(begins_at=task.begins_at, seconds=3600, number=len(task.hours))
    areas = outcome_areas(*([getattr(in_hour, name) for in_hour in task.hours] for name in _OUTCOMES))
    shown = [time_chart("runs", _("Runs per hour"), steps, areas, deploys=task.deploys)]
    for kind, title in (("run", _("Percentiles of run times")), ("wait", _("Percentiles of waits"))):
        lines = [
            Line(name, f"rtq-line-{name}", [getattr(in_hour, f"{kind}_{name}") for in_hour in task.hours])
            for name in ("p50", "p95")
        ]
        shown.append(time_chart(f"{kind}-times", title, steps, lines, deploys=task.deploys, write=format_duration))
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTask(TaskRow):
    """A task, and its jobs and runs in all queues."""

    details: TaskDetails


class OneTask(Sheet[WholeTask]):
    """What can be done with a task on its own page."""

    model, title, key, columns = "registeredtask", gettext_lazy("Tasks"), "task", TASKS.columns[:1]
    actions = (
        everywhere(SWITCHES["task"], lambda task: len(task.paused_in) == len(task.details.queues) > 0),
        ACTIONS["cancel_task"],
        ACTIONS["requeue_task"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InQueue(TaskRow):
    """A task in one queue."""

    name: str  # of the queue
    found: TaskInQueue


def in_queues(row: WholeTask) -> list[InQueue]:
    """The queues that have jobs of the task or where it is paused, and its own: first where it is paused, then those
    with most jobs."""
    rows = []
    for found in row.details.queues:
        pauses = [pair for pair in row.pauses if pair[0] == found.queue.name]
        rows.append(InQueue(task=row.task, code=row.code, name=found.queue.name, found=found, pauses=pauses))
    home = row.code and row.code.queue
    shown = [each for each in rows if each.found or each.name == home or each.paused_in]
    return sorted(shown, key=lambda each: (not each.paused_in, -each.found.jobs))


def _jobs(state: str, css: str = "") -> Column:
    def text(row: InQueue) -> str:
        count, is_cut = getattr(row.found, state), state in row.found.cut
        return number_text(count, is_cut=is_cut) if count or is_cut else ""

    def link(row: InQueue, url: PageUrl) -> str:
        wanted = Selection(task=f"={row.task}")
        return url("queue_change", row.name, query={"state": state, "q": str(wanted)})

    kind = Kind(html=str, plain=str, is_number=True)
    return Column(state, LIST_LABELS[state], lambda row: text(row) or 0, kind, link=link, css=lambda row: css)


class QueuesOfTask(Sheet[InQueue]):
    """The table of its jobs."""

    model, title = "registeredtask", gettext_lazy("Jobs")
    columns = (
        Column("name", gettext_lazy("Queue"), link=lambda row, url: url("queue_change", row.name)),
        Column("is_paused", "", lambda row: "paused" if row.found.queue.paused else "",
               states({"paused": State(gettext_lazy("paused"), "paused")}), under="name"),
        Column("pause", gettext_lazy("Task"), lambda row: row.pauses[0][1].text if row.paused_in else "", under="name"),
        *map(_jobs, ("queued", "scheduled", "retrying", "running")),
        _jobs("dead", "rtq-is-bad"),
    )  # fmt: skip
    actions = (SWITCHES["task"],)

    def where(self, row: InQueue) -> tuple[Sequence[str], Mapping[str, str]]:
        return [row.task], {"queue": row.name}


ONE_TASK, QUEUES_OF_TASK = OneTask(), QueuesOfTask()
