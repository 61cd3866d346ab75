"""Schedules: when they run, what became of the last run, and why one does not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.timezone import localtime
from django.utils.translation import get_language, gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from django_rtq.console.formatting import format_duration
from django_rtq.console.incidents.schedules import has_scheduler, is_let_go
from django_rtq.console.merging import joined
from django_rtq.console.output import ago
from django_rtq.console.reading.overview import Overview
from django_rtq.console.reading.queues import unserved
from django_rtq.console.reading.readers import Readers, readers_of
from django_rtq.console.render.column import JOB_STATE, TASK, TEXT, Column, Kind, PageUrl, State, states
from django_rtq.console.render.sheet import Sheet
from django_rtq.console.schedule_status import ScheduleStatus, read_schedules
from django_rtq.core.broker.task_backends import alias_of, places
from django_rtq.core.scheduler.registry import ScheduledTask
from django_rtq.core.schedules import START_FORMAT, Schedule
from django_rtq.core.tasks.task import Task
from django_rtq.databases.clocks import utc_now

_SOURCES = {
    "code": _("in the code"),
    "settings": _("in the settings"),
    "admin": _("in the admin"),
}
_STATES = {True: State(_("on")), False: State(_("off"), "plain")}


def _but(name: str, usual: str) -> Callable[[ScheduleStatus], Any]:
    """Something of the schedule itself, if it is not as usual."""

    def value(row: ScheduleStatus) -> Any:
        said = row.entry and getattr(row.entry.schedule, name)
        return None if said == usual else said

    return value


def _job_link(row: ScheduleStatus, url: PageUrl) -> str:
    has_job = row.last_state and not alias_of(row.place)
    return url("job_change", row.last_job, query={"queue": row.queue}) if has_job else ""


def _link(page: str, name: str) -> Callable[[ScheduleStatus, PageUrl], str]:
    def link(row: ScheduleStatus, url: PageUrl) -> str:
        return "" if row.entry is None or alias_of(row.place) else url(page, getattr(row, name))

    return link


def schedule_text(schedule: Schedule) -> str:
    """When it runs, in words. Cron expressions are explained in English only."""
    if (get_language() or "en").startswith("en"):
        return schedule.explain()
    if not schedule.every_ms:
        return f"{schedule.expression} ({schedule.zone})"
    duration = _length(schedule.every_ms)
    if not schedule.start:
        return gettext("every %(duration)s") % {"duration": duration}
    text = gettext("every %(duration)s, counted from %(start)s")
    return text % {"duration": duration, "start": f"{schedule.start:{START_FORMAT}}"}


def _length(ms: int) -> str:
    """The exact duration, in the largest unit that divides it."""
    for size, unit in _LENGTHS:
        if ms % size == 0:
            return str(unit % {"number": ms // size})
    return gettext("%(number)s s") % {"number": number_format(ms / 1000)}


_LENGTHS: tuple[tuple[int, Any], ...] = (
    (86_400_000, ngettext_lazy("%(number)d day", "%(number)d days", "number")),
    (3_600_000, ngettext_lazy("%(number)d hour", "%(number)d hours", "number")),
    (60_000, ngettext_lazy("%(number)d minute", "%(number)d minutes", "number")),
    (1000, ngettext_lazy("%(number)d second", "%(number)d seconds", "number")),
)


def slot_text(slot: datetime) -> str:
    """The time of a run, and the time until or since then."""
    text = gettext("%(moment)s (in %(time)s)") if slot > utc_now() else gettext("%(moment)s (%(time)s ago)")
    seconds = abs((slot - utc_now()).total_seconds())
    return text % {"moment": _local_time(slot), "time": format_duration(max(1.0, seconds))}


def _local_time(moment: datetime) -> str:
    return date_format(localtime(moment), "DATETIME_FORMAT")


SOURCE = Kind(html=lambda source: str(_SOURCES[source]), plain=str)
WHEN = Kind(html=schedule_text, plain=Schedule.explain, raw=Schedule.explain)
SLOT = Kind(html=slot_text, plain=ago, raw=datetime.isoformat)
ON = Kind(html=states(_STATES).html, plain=lambda on: "yes" if on else "no", is_state=True)


class Schedules(Sheet[ScheduleStatus]):
    """The list of schedules."""

    model, title = "schedule", _("Schedules")
    columns = (
        Column("name", _("Schedule"), link=lambda row, url: url("schedule_changelist", query={"q": row.name})),
        Column("enabled", _("Enabled"), kind=ON, under="name"),
        Column("source", "", kind=SOURCE, under="name"),
        Column("task", _("Task"), kind=TASK, link=_link("registeredtask_change", "task"), hint=lambda row: row.task),
        Column("queue", _("Queue"), link=_link("queue_change", "queue")),
        Column("when", _("When"), lambda row: row.entry and row.entry.schedule, WHEN),
        Column("missed", _("Missed runs"), _but("missed", "once"), TEXT, under="when"),
        Column("overlap", _("Overlap"), _but("overlap", "allow"), TEXT, under="when"),
        Column("last_slot", _("Last run"), kind=SLOT),
        Column("next_slot", _("Next run"), kind=SLOT),
        Column("last_job", _("Job"), lambda row: row.last_job or None, under="last_slot", link=_job_link),
        Column("last_state", _("State"), lambda row: row.last_state or None, JOB_STATE, under="last_slot"),
        Column("problem", "", css=lambda row: "rtq-is-bad" if row.is_bad else "rtq-soft", under="name"),
    )

    def read(
        self, readers: Readers, fits: Callable[[ScheduleStatus], bool] = lambda status: True
    ) -> Sequence[ScheduleStatus]:
        """Those of all Redis that fit: first what does not run. Raises BrokerError and ConfigurationError."""
        rows = self.rows(readers, filter(fits, joined(readers.in_places(places(), read_schedules).values())))
        return sorted(rows, key=lambda row: (not row.is_bad, not row.problem, row.name))

    def rows(self, readers: Readers, statuses: Iterable[ScheduleStatus]) -> list[ScheduleStatus]:
        """These, first the valid ones, with why each does not run, as far as its Redis answers. Raises BrokerError."""
        by_name = sorted(statuses, key=lambda each: (each.entry is None, each.name))
        used = {each.place for each in by_name if each.entry is not None}
        overviews = readers.in_places(used, lambda place: readers_of(place).overview.shared())
        rows = []
        for each in by_name:
            if each.entry is None:
                rows.append(each)
            elif each.place in overviews:
                problem, is_bad = why_not(each, each.entry, overviews[each.place])
                rows.append(replace(each, problem=problem, is_bad=is_bad))
        return rows

    def facts(self, row: ScheduleStatus) -> Mapping[str, Any]:
        if row.entry is None:
            return {}
        schedule = row.entry.schedule
        return {
            "cron": schedule.expression or None,
            "every_seconds": schedule.every_ms / 1000 or None,
            "start": schedule.start and schedule.start.isoformat(),
            "tz": schedule.zone if schedule.expression else None,
            "missed": schedule.missed,
            "overlap": schedule.overlap,
        }


SCHEDULES = Schedules()


def why_not(status: ScheduleStatus, entry: ScheduledTask, overview: Overview) -> tuple[str, bool]:
    """Why a schedule does not run, or its jobs do not; "" if it does. And whether something is wrong."""
    queue = status.queue
    if not status.enabled:
        return gettext("Switched off."), False
    missing = not has_scheduler(overview, queue)
    if status.missed_slot is not None and not is_let_go(status, overview):
        text = (
            gettext("The run of %(moment)s was missed: no scheduler is running for queue %(name)s.")
            if missing
            else gettext("The run of %(moment)s was missed: the log of the scheduler of queue %(name)s says why.")
        )
        return text % {"moment": _local_time(status.missed_slot), "name": queue}, True
    if missing:
        return gettext("No scheduler is running for queue %(name)s.") % {"name": queue}, True
    if not status.has_begun:
        text = gettext("The scheduler of queue %(name)s does not know it. Does it run this version of the project?")
        return text % {"name": queue}, True
    if waiting := _why_jobs_wait(entry.task, overview):
        return waiting, True
    if status.missed_slot is not None:
        text = gettext("The run of %(moment)s was missed, and missed runs are skipped.")
        return text % {"moment": _local_time(status.missed_slot)}, False
    return (_skipped_text(entry), False) if status.is_skipped else ("", False)


def _why_jobs_wait(task: Task[Any, Any], overview: Overview) -> str:
    details = next((row.details for row in overview.queues if row.details.name == task.queue), None)
    if unserved([task.queue], overview.workers):
        return gettext("No worker serves queue %(name)s: its jobs wait.") % {"name": task.queue}
    if details is not None and details.paused:
        return gettext("Queue %(name)s is paused: its jobs wait.") % {"name": task.queue}
    if details is not None and any(p.task == task.name and not p.is_over for p in details.paused_tasks):
        return gettext("The task is paused in queue %(name)s: its jobs wait.") % {"name": task.queue}
    return ""


def _skipped_text(entry: ScheduledTask) -> str:
    if entry.schedule.overlap == "skip":
        return gettext("The last run was skipped: the job of the run before was not over.")
    if entry.task.unique is not False:
        return gettext("The last run was skipped: an equal job existed.")
    return gettext("The last run was skipped: the queue was full.")
