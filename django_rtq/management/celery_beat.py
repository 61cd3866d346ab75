"""Converts schedules of Celery beat: entries of its settings or app, and rows of django-celery-beat.

Neither library is imported. Their objects are known by their attributes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django_rtq.exceptions import RTQError
from django_rtq.schedules import schedule_from_settings
from django_rtq.tasks import registry
from django_rtq.tasks.calls import check_call

_CRON_FIELDS = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_SECONDS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1, "microseconds": 1e-6}
_OPTIONS = {"queue"}  # of an entry that a schedule of ours has, too


class NotConvertible(Exception):
    """A schedule has no counterpart. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A schedule of Celery beat as one of ours."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)  # as in RTQ["SCHEDULES"]
    queue: str = ""
    enabled: bool = True
    problem: str = ""  # why it was not converted
    notes: tuple[str, ...] = ()  # what is different, or left to do


def from_entries(entries: Mapping[str, Mapping[str, Any]], tz: str) -> Iterator[Converted]:
    """Entries of CELERY_BEAT_SCHEDULE or app.conf.beat_schedule; `tz` is the time zone of Celery."""
    for name, entry in entries.items():
        try:
            moments = _moments(entry.get("schedule"), tz)
        except NotConvertible as error:
            yield Converted(name=name, problem=str(error))
            continue
        options = dict(entry.get("options") or {})
        notes = [
            f"the option {option!r} is left out: set it with the task" for option in options if option not in _OPTIONS
        ]
        call = {"args": list(entry.get("args") or ()), "kwargs": dict(entry.get("kwargs") or {})}
        yield _checked(name, str(entry.get("task")), moments, call, queue=str(options.get("queue") or ""), notes=notes)


def from_rows(rows: Iterable[Any]) -> Iterator[Converted]:
    """Rows of django-celery-beat: PeriodicTask."""
    for row in rows:
        try:
            moments = _moments_of_row(row)
            call = {"args": json.loads(row.args or "[]"), "kwargs": json.loads(row.kwargs or "{}")}
        except (NotConvertible, ValueError) as error:
            yield Converted(name=row.name, problem=str(error))
            continue
        unused = ("exchange", "routing_key", "priority", "expires", "expire_seconds", "start_time")
        notes = [f"{name} is left out: set options with the task" for name in unused if getattr(row, name, None)]
        yield _checked(row.name, row.task, moments, call, queue=row.queue or "", notes=notes, enabled=bool(row.enabled))


def _checked(
    name: str,
    task: str,
    moments: Mapping[str, Any],
    call: Mapping[str, Any],
    **rest: Any,
) -> Converted:
    given = {key: value for key, value in call.items() if value}
    notes = list(rest.pop("notes"))
    try:
        schedule = schedule_from_settings(name, {**moments, **given})
        declared = registry.find_task(task)
        if declared is None:
            notes.append(f"no task {task} is registered yet: declare it with @task")
        else:
            check_call(declared, schedule.args, dict(schedule.kwargs))
    except (RTQError, TypeError) as error:
        return Converted(name=name, problem=str(error))
    return Converted(name=name, options={"task": task, **moments, **given}, notes=tuple(notes), **rest)


def _moments(schedule: Any, tz: str) -> dict[str, Any]:
    if isinstance(schedule, timedelta):
        return {"every": _plain(schedule.total_seconds())}
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return {"every": _plain(schedule)}
    if all(hasattr(schedule, f"_orig_{name}") for name in _CRON_FIELDS):
        return _cron({name: getattr(schedule, f"_orig_{name}") for name in _CRON_FIELDS}, tz)
    if isinstance(every := getattr(schedule, "run_every", None), timedelta):
        return {"every": _plain(every.total_seconds())}
    raise NotConvertible(f"a schedule of type {type(schedule).__name__} has no counterpart")


def _moments_of_row(row: Any) -> dict[str, Any]:
    if row.one_off:
        raise NotConvertible("it runs once: call using(run_after=...).delay() instead")
    if row.interval is not None:
        return {"every": _plain(row.interval.every * _SECONDS[row.interval.period])}
    if row.crontab is not None:
        return _cron({name: getattr(row.crontab, name) for name in _CRON_FIELDS}, str(row.crontab.timezone))
    kind = "solar" if row.solar is not None else "clocked"
    raise NotConvertible(f"a {kind} schedule has no counterpart")


def _cron(fields: Mapping[str, Any], tz: str) -> dict[str, Any]:
    texts = [_field(fields[name]) for name in _CRON_FIELDS]
    if not texts[2].startswith("*") and not texts[4].startswith("*"):
        raise NotConvertible(
            "it names days of the month and of the week: for Celery both have to match, for cron one of them. Check "
            "one of them in the task"
        )
    return {"cron": " ".join(texts), "tz": tz}


def _field(value: Any) -> str:
    """A field of a crontab: text, a number, or some numbers."""
    if isinstance(value, set | frozenset | list | tuple):
        return ",".join(map(str, sorted(value)))
    return str(value).replace(" ", "")


def _plain(seconds: float) -> float:
    return int(seconds) if seconds == int(seconds) else seconds
