"""Schedules: when they run, what became of the last run, and why one does not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.utils.formats import date_format
from django.utils.timesince import timesince
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.console.admin.display.texts import STATE_LABELS, schedule_text
from django_rtq.console.admin.urls import PageUrl
from django_rtq.console.incidents.schedules import has_scheduler, is_let_go
from django_rtq.console.inspector.inspector import get_inspector
from django_rtq.console.inspector.overview import Overview
from django_rtq.console.inspector.places import alias_of
from django_rtq.console.inspector.queues import unserved
from django_rtq.console.sanitize import clean_text
from django_rtq.console.schedule_status import ScheduleStatus, read_all_schedules
from django_rtq.core.clocks import utc_now
from django_rtq.core.jobs.job import JobState

EMPTY_VALUE = "-"
MAX_SHOWN = 200  # rows of a table
_SOURCES = {
    "code": gettext_lazy("in the code"),
    "settings": gettext_lazy("in the settings"),
    "admin": gettext_lazy("in the admin"),
}


def overviews_of(statuses: Iterable[ScheduleStatus]) -> dict[str, Overview]:
    """The overview of the Redis of each schedule, at most a second old. Raises BrokerError."""
    used = {status.place for status in statuses}
    return get_inspector().in_places(used, lambda place: get_inspector(place).shared_overview.read())


def declared_rows(url: PageUrl | None) -> list[dict[str, Any]]:
    """A row for each schedule of the code and the settings. Raises BrokerError and ConfigurationError."""
    return _rows(read_all_schedules(lambda entry: entry.source != "admin").valid, url)


def task_rows(task: str, url: PageUrl, schedules_url: str) -> list[dict[str, Any]]:
    """A row for each schedule of a task. Raises BrokerError and ConfigurationError."""
    schedules = read_all_schedules(lambda entry: entry.task.name == task)
    broken = {name: why for name, why in schedules.broken.items() if schedules.rows[name].get("task") == task}
    rows = [
        *(_broken_row(name, schedules.rows[name], why) for name, why in broken.items()),
        *_rows(schedules.valid, url),
    ]
    for row in rows if schedules_url else ():
        row["url"] = f"{schedules_url}?{urlencode({'q': row['name']})}"
    return rows


def _rows(statuses: Sequence[ScheduleStatus], url: PageUrl | None) -> list[dict[str, Any]]:
    """First what does not run. Without `url` nothing is linked."""
    overviews = overviews_of(statuses)
    rows = [_row(status, overviews[status.place], url) for status in statuses if status.place in overviews]
    return sorted(rows, key=lambda row: (row["css"] != "rtq-is-bad", not row["why"], row["name"]))


def _row(status: ScheduleStatus, overview: Overview, url: PageUrl | None) -> dict[str, Any]:
    entry = status.entry
    task, queue = entry.task.name, entry.task.queue
    why, is_bad = why_not(status, overview)
    is_linked = url is not None and not alias_of(status.place)
    has_job = is_linked and bool(status.last_state)
    return {
        "name": entry.name,
        "url": "",
        "source": _SOURCES[entry.source],
        "task": task,
        "task_url": url("registeredtask_change", task) if url and is_linked else "",
        "queue": queue,
        "queue_url": url("queue_change", queue) if url and is_linked else "",
        "when": schedule_text(entry.schedule),
        "last": last_run_text(status),
        "job_url": url("job_change", status.last_job, query={"queue": queue}) if url and has_job else "",
        "next": next_run_text(status),
        "why": why,
        "css": "rtq-is-bad" if is_bad else "rtq-soft",
    }


def _broken_row(name: str, row: Mapping[str, Any], problem: str) -> dict[str, Any]:
    plain = dict.fromkeys(("url", "task_url", "queue_url", "job_url", "when", "last", "next"), "")
    task, queue = clean_text(row.get("task", ""), 300), clean_text(row.get("queue", ""), 100)
    shown = {"name": name, "source": _SOURCES["admin"], "task": task, "queue": queue}
    return {**plain, **shown, "why": clean_text(problem, 500), "css": "rtq-is-bad"}


def why_not(status: ScheduleStatus, overview: Overview) -> tuple[str, bool]:
    """Why a schedule does not run, or its jobs do not; "" if it does. And whether something is wrong."""
    queue = status.entry.task.queue
    if not status.entry.enabled:
        return _("Switched off."), False
    missing = not has_scheduler(overview, queue)
    if status.missed_slot is not None and not is_let_go(status, overview):
        return _missed_text(status.missed_slot, queue, is_scheduler_missing=missing), True
    if missing:
        return _("No scheduler is running for queue %(name)s.") % {"name": queue}, True
    if not status.has_begun:
        text = _("The scheduler of queue %(name)s does not know it. Does it run this version of the project?")
        return text % {"name": queue}, True
    if waiting := _why_jobs_wait(status, overview):
        return waiting, True
    if status.missed_slot is not None:
        text = _("The run of %(moment)s was missed, and missed runs are skipped.")
        return text % {"moment": _local_time(status.missed_slot)}, False
    return (_skipped_text(status), False) if status.is_skipped else ("", False)


def _missed_text(slot: datetime, queue: str, *, is_scheduler_missing: bool) -> str:
    text = (
        _("The run of %(moment)s was missed: no scheduler is running for queue %(name)s.")
        if is_scheduler_missing
        else _("The run of %(moment)s was missed: the log of the scheduler of queue %(name)s says why.")
    )
    return text % {"moment": _local_time(slot), "name": queue}


def _why_jobs_wait(status: ScheduleStatus, overview: Overview) -> str:
    task = status.entry.task
    details = next((row.details for row in overview.queues if row.details.name == task.queue), None)
    if unserved([task.queue], overview.workers):
        return _("No worker serves queue %(name)s: its jobs wait.") % {"name": task.queue}
    if details is not None and details.paused:
        return _("Queue %(name)s is paused: its jobs wait.") % {"name": task.queue}
    if details is not None and any(p.task == task.name and not p.is_over for p in details.paused_tasks):
        return _("The task is paused in queue %(name)s: its jobs wait.") % {"name": task.queue}
    return ""


def _skipped_text(status: ScheduleStatus) -> str:
    if status.entry.schedule.overlap == "skip":
        return _("The last run was skipped: the job of the run before was not over.")
    if status.entry.task.unique is not False:
        return _("The last run was skipped: an equal job existed.")
    return _("The last run was skipped: the queue was full.")


def next_run_text(status: ScheduleStatus) -> str:
    """The time of the next run, and the time until then."""
    if status.next_slot is None:
        return EMPTY_VALUE
    facts = {"moment": _local_time(status.next_slot), "time": _time_span(status.next_slot)}
    return _("%(moment)s (in %(time)s)") % facts


def last_run_text(status: ScheduleStatus) -> str:
    """The time of the last run, how long ago, and the state of its job."""
    if status.last_slot is None:
        return EMPTY_VALUE
    state = str(STATE_LABELS[JobState(status.last_state)]) if status.last_state else _("result expired")
    facts = {"moment": _local_time(status.last_slot), "time": _time_span(status.last_slot)}
    if status.is_skipped:
        return _("%(moment)s (%(time)s ago): skipped; the job before: %(state)s") % {**facts, "state": state}
    return _("%(moment)s (%(time)s ago): %(state)s") % {**facts, "state": state}


def _local_time(moment: datetime) -> str:
    return date_format(localtime(moment), "DATETIME_FORMAT")


def _time_span(moment: datetime) -> str:
    """The time until or since then. Django's timesince() has no seconds."""
    present = utc_now()
    seconds = abs((moment - present).total_seconds())
    if seconds < 60:
        return _("%(number)d s") % {"number": seconds}
    return timesince(min(moment, present), max(moment, present))
