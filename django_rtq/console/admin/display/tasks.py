"""The list of tasks, and the page of a task: totals, charts by the hour, and its jobs in each queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_rtq.console.admin.display.charts.history import deploy_events, outcome_bands
from django_rtq.console.admin.display.charts.svg import Line
from django_rtq.console.admin.display.charts.time_chart import Steps, time_chart
from django_rtq.console.admin.display.paged_list import ListParams
from django_rtq.console.admin.display.texts import LIST_LABELS, number_text
from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.formatting import EMPTY_VALUE, format_duration, format_number, format_percent, names_text
from django_rtq.console.inspector.details import QueueDetails
from django_rtq.console.inspector.metrics.reader import TaskMetrics
from django_rtq.console.inspector.task_details import TaskDetails, TaskInQueue
from django_rtq.console.sanitize import clean_text
from django_rtq.console.subjects.schedules import schedule_text
from django_rtq.core.jobs.aliases import names_of
from django_rtq.core.tasks.task import TASK_NAMES, Task

MAX_QUEUES_NAMED = 5
MAX_QUEUES_SHOWN = 10  # in the table of jobs, unless all are asked for
_OUTCOMES = ("done", "failed", "crashed")
STATES = ("queued", "scheduled", "retrying", "running", "dead")


@dataclass(frozen=True, kw_only=True)
class TaskListParams(ListParams):
    """What the URL of the list says."""

    TITLES = {
        "name": gettext_lazy("Task"),
        "done": gettext_lazy("Done"),
        "failed": gettext_lazy("Failed"),
        "failure_rate": gettext_lazy("Failure rate"),
        "run_p50": gettext_lazy("Run p50"),
        "run_p95": gettext_lazy("Run p95"),
        "wait_p50": gettext_lazy("Wait p50"),
        "wait_p95": gettext_lazy("Wait p95"),
    }
    FIRST = "name"


def listed_tasks(
    params: TaskListParams, names: Collection[str], internal: Collection[str], metrics: Mapping[str, TaskMetrics]
) -> list[str]:
    """The tasks whose names contain what is searched, in the order of the list; by name, ours behind the project's."""
    search = params.search.casefold()
    matching = sorted((name for name in names if search in name.casefold()), key=lambda name: (name in internal, name))
    if params.sort == params.NAME:
        return matching[::-1] if params.is_reversed else matching
    figures = {name: getattr(of_task, params.sort) for name, of_task in metrics.items()}
    counted = [name for name in matching if figures.get(name) is not None]
    counted.sort(key=figures.__getitem__, reverse=not params.is_reversed)
    return [*counted, *(name for name in matching if figures.get(name) is None)]


@dataclass(slots=True, kw_only=True)
class PausedTask:
    """A paused task over all queues."""

    queues: list[str]  # those in which it is paused
    held: int  # jobs that wait there
    held_in: dict[str, int]  # queue -> how many of them, if any
    state: str  # for how long it has been paused, and by whom; in the first of these queues

    @property
    def text(self) -> str:
        """Where it is paused, and how many jobs wait."""
        text = ngettext("%(count)s job held in %(queues)s", "%(count)s jobs held in %(queues)s", self.held)
        names = sorted(self.held_in, key=lambda name: -self.held_in[name]) or self.queues
        return text % {"count": format_number(self.held), "queues": names_text(names, MAX_QUEUES_NAMED)}


def paused_tasks(queues: Iterable[QueueDetails]) -> dict[str, PausedTask]:
    """The tasks that are paused in these queues, by name."""
    paused: dict[str, PausedTask] = {}
    for queue in queues:
        for pause in queue.paused_tasks:
            if not pause.is_over:
                one = paused.setdefault(
                    pause.task, PausedTask(queues=[], held=0, held_in={}, state=clean_text(pause.text, 200))
                )
                one.queues.append(queue.name)
                one.held += pause.held
                if pause.held:
                    one.held_in[queue.name] = pause.held
    return paused


def task_options(task: Task[Any, Any]) -> Iterator[str]:
    """The options that differ from the defaults; functions and classes by their names."""
    declared = {field.name: field.default for field in fields(task) if field.name in TASK_NAMES}
    for name, default in declared.items():
        value = getattr(task, name)
        if value != default and name not in ("queue_name", "name", "schedule"):
            yield f"{name}={_value_text(value)}"
    for schedule in task.schedule:
        yield schedule_text(schedule)


def _value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value))
    return value.__name__ if hasattr(value, "__name__") else str(value)


def metrics_cells(metrics: TaskMetrics | None) -> list[dict[str, str]]:
    """The cells of the list of tasks."""
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


def totals(metrics: TaskMetrics) -> list[dict[str, str]]:
    """The figures at the top of the page."""
    done, failed, rate, *times = metrics_cells(metrics)
    crashed = {"text": format_number(metrics.crashed), "css": "rtq-is-bad" if metrics.crashed else "rtq-zero"}
    titles = [_("Done"), _("Failed"), _("Crashed"), _("Failure rate"), _("Run p50"), _("Run p95")]
    titles += [_("Wait p50"), _("Wait p95")]
    return [{"title": title, **cell} for title, cell in zip(titles, [done, failed, crashed, rate, *times], strict=True)]


def charts(task: TaskDetails) -> list[dict[str, Any]]:
    """Runs by outcome, and percentiles of run and wait times."""
    shown = [hour.metrics for hour in task.hours]
    steps = Steps(begins_at=task.hours[0].begins_at, seconds=3600, number=len(shown))
    bands = outcome_bands(*([getattr(in_hour, name) for in_hour in shown] for name in _OUTCOMES))
    events = deploy_events(task.deploys)
    run_times, waits = (
        [
            Line(name, f"rtq-line-{name}", [getattr(in_hour, f"{kind}_{name}") for in_hour in shown])
            for name in ("p50", "p95")
        ]
        for kind in ("run", "wait")
    )
    return [
        time_chart("runs", _("Runs per hour"), steps, bands, events=events),
        time_chart("run-times", _("Percentiles of run times"), steps, run_times, events=events, write=format_duration),
        time_chart("wait-times", _("Percentiles of waits"), steps, waits, events=events, write=format_duration),
    ]


def shown_queues(task: TaskDetails, home: str) -> list[TaskInQueue]:
    """The queues that have jobs of the task or where it is paused, and its own: first where it is paused, then those
    with most jobs."""
    shown = [
        in_queue
        for in_queue in task.queues
        if in_queue or in_queue.queue.name == home or _pause_in(task.name, in_queue)
    ]
    return sorted(shown, key=lambda in_queue: (not _pause_in(task.name, in_queue), -in_queue.jobs))


def queue_rows(task: TaskDetails, shown: Iterable[TaskInQueue], url: PageUrl) -> list[dict[str, Any]]:
    """A row for each of these queues."""
    return [
        {
            "name": in_queue.queue.name,
            "url": url("queue_change", in_queue.queue.name),
            "is_paused": in_queue.queue.paused,
            "pause": _pause_in(task.name, in_queue),
            "cells": [_cell(task.name, in_queue, state, url) for state in STATES],
        }
        for in_queue in shown
    ]


def _pause_in(task: str, found: TaskInQueue) -> str:
    """For how long it has been paused there, and by whom; "": it is not."""
    texts = [pause.text for pause in found.queue.paused_tasks if pause.task == task and not pause.is_over]
    return clean_text(texts[0], 200) if texts else ""


def state_titles() -> list[str]:
    """The titles of the columns of queue_rows()."""
    return [str(LIST_LABELS[state]) for state in STATES]


def _cell(task: str, found: TaskInQueue, state: str, url: PageUrl) -> dict[str, str]:
    count, is_cut = getattr(found, state), state in found.cut
    if state == "scheduled":  # held jobs are counted, however few of them the search has met
        names = names_of(task)
        count = max(count, sum(pause.held for pause in found.queue.paused_tasks if pause.task in names))
    return {
        "text": number_text(count, is_cut=is_cut),
        "url": url("queue_change", found.queue.name, query={"state": state, "task": f"={task}"})
        if count or is_cut
        else "",
        "css": "rtq-zero" if not count else "rtq-is-bad" if state == "dead" else "",
    }
