"""Tasks: their options, their runs in the last hours, and where they are paused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import filterfalse
from operator import attrgetter
from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from django_rtq.console.acting.actions import ACTIONS, everywhere
from django_rtq.console.acting.verb import MAX_QUEUES_NAMED
from django_rtq.console.formatting import LIST_LABELS, names_text, number_text
from django_rtq.console.merging import grouped
from django_rtq.console.reading.details import QueueDetails, TaskPause
from django_rtq.console.reading.metrics.reader import TaskMetrics, VersionRuns
from django_rtq.console.reading.readers import Readers
from django_rtq.console.reading.selection import Selection
from django_rtq.console.reading.task_details import TaskDetails, TaskInQueue
from django_rtq.console.render.column import DURATION, MOMENT, NUMBER, SHARE, Column, Kind, PageUrl, State, states
from django_rtq.console.render.sheet import Empty, Sheet
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.schedules import schedule_text
from django_rtq.core.tasks.registry import all_tasks, is_internal
from django_rtq.core.tasks.task import TASK_NAMES, Task

NO_RUNS = TaskMetrics()

Pauses = Sequence[tuple[str, TaskPause]]  # queues with their pauses, or with those that were resumed a moment ago


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task that is registered in this process, or that Redis knows."""

    task: str
    code: Task[Any, Any] | None = None  # None: it is not registered
    metrics: TaskMetrics = NO_RUNS
    pauses: Pauses = ()

    @property
    def is_internal(self) -> bool:
        """Whether it is one of django_rtq's own."""
        return is_internal(self.task)

    @property
    def paused_in(self) -> list[str]:
        """The queues in which it is paused."""
        return [queue for queue, pause in self.pauses if not pause.is_over]

    @property
    def options(self) -> list[str]:
        """Its options that differ from the defaults, and its schedules."""
        return [] if self.code is None else [*_options(self.code), *map(schedule_text, self.code.schedule)]


def _options(task: Task[Any, Any]) -> Iterator[str]:
    for declared in fields(task):
        value = getattr(task, declared.name)
        is_option = declared.name in TASK_NAMES and declared.name not in ("queue_name", "name", "schedule")
        if is_option and value != declared.default:
            yield f"{declared.name}={_value_text(value)}"


def _value_text(value: Any) -> str:
    """Functions and classes by their names."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value))
    return value.__name__ if hasattr(value, "__name__") else str(value)


def pauses_by_task(queues: Iterable[QueueDetails]) -> dict[str, list[tuple[str, TaskPause]]]:
    """The pauses of tasks in these queues, by name."""
    return grouped((pause.task, (queue.name, pause)) for queue in queues for pause in queue.paused_tasks)


def _name_html(name: str) -> str:
    module, _dot, short = clean_text(name, 300).rpartition(".")
    return format_html('{}<div class="rtq-soft">{}</div>', short, module) if module else short


def _pauses_html(pauses: Pauses) -> str:
    """For how long it has been paused, and by whom, in the first queue; and all of them."""
    paused = [(queue, clean_text(pause.text, 200)) for queue, pause in pauses if not pause.is_over]
    if not paused:
        return ""
    label = '<span class="rtq-state rtq-state-paused">{}</span> <span class="rtq-soft">{}</span>'
    return format_html(label, paused[0][1], names_text([queue for queue, _ in paused], MAX_QUEUES_NAMED))


def _pauses_text(pauses: Pauses) -> str:
    resumed = "resumed: its jobs go back to their lanes"
    return "; ".join(f"{queue}: {resumed if pause.is_over else pause.text}" for queue, pause in pauses)


NAME = Kind(html=_name_html, plain=str)
OPTIONS = Kind(html=", ".join, plain=", ".join)
PAUSES = Kind(
    html=_pauses_html,
    plain=_pauses_text,
    raw=lambda pauses: [{"queue": queue, **asdict(pause)} for queue, pause in pauses],
    is_state=True,
)
STATES = {"not_registered": State(_("not registered in this process"), "unknown")}


def _metric(name: str, title: Any, kind: Kind = DURATION, *, is_sortable: bool = True, **more: Any) -> Column:
    return Column(name, title, attrgetter(f"metrics.{name}"), kind, is_sortable=is_sortable, **more)


class Tasks(Sheet[TaskRow]):
    """The list of tasks."""

    model, title, key, searches = "registeredtask", _("Tasks"), "task", _("Part of the name")
    columns = (
        Column(
            "task",
            _("Task"),
            kind=NAME,
            link=lambda row, url: url("registeredtask_change", row.task),
            css=lambda row: "rtq-path",
            hint=lambda row: row.task,
            is_sortable=True,
        ),
        Column("state", _("State"), lambda row: "" if row.code or row.is_internal else "not_registered",
               states(STATES), under="task"),
        Column("queue", _("Queue"), lambda row: row.code and row.code.queue,
               link=lambda row, url: url("queue_change", row.code.queue)),
        _metric("done", _("Done"), NUMBER),
        _metric("failed", _("Failed"), NUMBER, css=lambda row: "rtq-is-bad"),
        _metric("crashed", _("Crashed"), NUMBER, css=lambda row: "rtq-is-bad", under="failed"),
        _metric("failure_rate", _("Failure rate"), SHARE),
        _metric("run_p50", _("Run p50")),
        _metric("run_p95", _("Run p95")),
        _metric("wait_p50", _("Wait p50")),
        _metric("wait_p95", _("Wait p95")),
        Column("held", _("Held"), lambda row: sum(pause.held for _, pause in row.pauses), NUMBER, under="task"),
        Column("paused", _("Paused"), attrgetter("pauses"), PAUSES, under="task"),
        Column("options", _("Options"), kind=OPTIONS, under="task"),
    )  # fmt: skip
    actions = (ACTIONS["pause_task"], ACTIONS["resume_task"])
    about = _("Metrics of the last 24 hours.")
    empty = Empty(
        _("No task is registered."),
        _("Decorate a function in the tasks.py of an app:"),
        "from django_rtq import task\n\n@task\ndef send_invoice(invoice_id): ...",
    )

    def read(self, readers: Readers) -> Sequence[TaskRow]:
        """Those first that fail most, ours behind the project's."""
        metrics, known, pauses = readers.tasks.all(), all_tasks(), pauses_by_task(readers.queues.details())
        rows = [
            TaskRow(task=name, code=known.get(name), metrics=metrics.get(name, NO_RUNS), pauses=pauses.get(name, ()))
            for name in {*filterfalse(is_internal, known), *metrics, *pauses}
        ]
        return sorted(rows, key=_worst_first)


def _worst_first(row: TaskRow) -> tuple[bool, float, int, str]:
    return row.is_internal, -(row.metrics.failure_rate or 0.0), -row.metrics.failed, row.task


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTask(TaskRow):
    """A task, and its jobs and runs in all queues."""

    details: TaskDetails


#: What can be done with a task on its own page.
OF_TASK = (
    *everywhere(
        "task",
        lambda task: not task.is_internal,
        lambda task: len(task.paused_in) == len(task.details.queues) > 0,
    ),
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
    shown = [each for each in rows if each.found.jobs or each.name == home or each.paused_in]
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

    model, title = "registeredtask", _("Jobs")
    columns = (
        Column("name", _("Queue"), link=lambda row, url: url("queue_change", row.name)),
        Column("is_paused", "", lambda row: "paused" if row.found.queue.paused else "",
               states({"paused": State(_("paused"), "paused")}), under="name"),
        Column("pause", _("Task"), lambda row: row.pauses[0][1].text if row.paused_in else "", under="name"),
        *map(_jobs, ("queued", "scheduled", "retrying", "running")),
        _jobs("dead", "rtq-is-bad"),
    )  # fmt: skip
    actions = (ACTIONS["pause_task"], ACTIONS["resume_task"])

    def where(self, row: InQueue) -> tuple[Sequence[str], Mapping[str, str]]:
        return [row.task], {"queue": row.name}


class Versions(Sheet[VersionRuns]):
    """How runs of a task, or of a queue, did with each version of the project: the table on their pages."""

    model, title, key = "version", _("Versions"), "version"
    columns = (
        Column("version", _("Version")),
        Column("since", _("Since"), kind=MOMENT, under="version"),
        _metric("done", _("Done"), NUMBER, is_sortable=False),
        _metric("failed", _("Failed"), NUMBER, is_sortable=False),
        _metric("failure_rate", _("Failure rate"), SHARE, is_sortable=False),
        _metric("run_p50", _("Run p50"), is_sortable=False),
        _metric("run_p95", _("Run p95"), is_sortable=False),
    )


TASKS, QUEUES_OF_TASK, VERSIONS = Tasks(), QueuesOfTask(), Versions()
