"""When periodic jobs start: by a cron expression, or at a fixed rate.

A slot is a moment for which a schedule fires. Slots follow from the definition and the clock alone, so any number
of schedulers finds the same ones; the script `fire` sees to it that each of them starts one job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import islice, takewhile
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from django.utils import timezone as django_timezone

from django_rtq.exceptions import InvalidTask

LONGEST_EXPRESSION = 200
MOST_MISSED = 100  # of `missed="all"`
MISSED_SECONDS = 60  # a slot that is older was missed
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When, and with which arguments, a task is started again and again. Made by cron() and every()."""

    expression: str = ""  # five fields of cron
    tz: str = ""  # the zone in which they are read; "": TIME_ZONE of the settings
    every_ms: int = 0  # or at a fixed rate, counted from 1970 on, so that it does not drift
    name: str = ""  # "": the name of the task
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    missed: Literal["skip", "once", "all"] = "once"  # what becomes of slots for which no scheduler was there
    overlap: Literal["allow", "skip"] = "allow"  # whether a slot fires while the last job lives

    def __post_init__(self) -> None:
        if self.missed not in ("skip", "once", "all"):
            raise InvalidTask(f'schedule: missed is {self.missed!r}, but has to be "skip", "once" or "all".')
        if self.overlap not in ("allow", "skip"):
            raise InvalidTask(f'schedule: overlap is {self.overlap!r}, but has to be "allow" or "skip".')
        if self.expression:
            _ = self.next_ms(0)

    @property
    def print(self) -> str:
        """Changes when the moments do: a schedule that was edited starts anew, and has missed nothing."""
        return hashlib.sha256(f"{self.expression}|{self.tz}|{self.every_ms}".encode()).hexdigest()[:12]

    def next_ms(self, after_ms: int) -> int:
        """The first slot after a moment, in milliseconds since 1970."""
        return next(self._slots(after_ms))

    def due(self, last_ms: int, now_ms: int) -> list[int]:
        """The slots that are to be fired now, when the last one that was is known: the policy for missed ones."""
        slots = takewhile(lambda slot: slot <= now_ms, self._slots(last_ms))
        if self.missed == "all":
            return list(islice(slots, MOST_MISSED))
        latest = None
        if self.every_ms:
            newest = now_ms - now_ms % self.every_ms
            latest = newest if newest > last_ms else None
        else:
            for latest in self._recent(slots, last_ms, now_ms):  # noqa: B007 - the last one is wanted
                pass
        if latest is None or (self.missed == "skip" and latest < now_ms - MISSED_SECONDS * 1000):
            return []
        return [latest]

    def explain(self) -> str:
        """In words."""
        if self.every_ms:
            return f"Every {timedelta(milliseconds=self.every_ms)} h"
        return f"{CronSim(self.expression, datetime.now(timezone.utc)).explain()} ({self._zone().key})"

    def _recent(self, slots: Iterator[int], last_ms: int, now_ms: int) -> Iterator[int]:
        """Of a long silence only the end matters: nobody wants to count all minutes of a year."""
        if now_ms - last_ms < 2 * 86_400_000:
            return slots
        backwards = CronSim(self.expression, self._at(now_ms + 1), reverse=True)
        newest = next(backwards, None)
        return iter([] if newest is None or _ms(newest) <= last_ms else [_ms(newest)])

    def _slots(self, after_ms: int) -> Iterator[int]:
        if self.every_ms:
            slot = after_ms - after_ms % self.every_ms
            while True:
                slot += self.every_ms
                yield slot
        for moment in CronSim(self.expression, self._at(after_ms)):
            yield _ms(moment)

    def _at(self, ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, tz=self._zone())

    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.tz if self.tz else django_timezone.get_default_timezone_name())


def cron(expression: str, *, tz: str = "", **options: Any) -> Schedule:
    """A schedule by the five fields of cron ("0 5 * * mon-fri"), or @hourly, @daily, @weekly, @monthly, @yearly.

    In the hour that daylight saving skips, a fixed time fires at its end; in the one that comes twice, it fires once;
    "every hour" fires in both. Options: name, args, kwargs, missed, overlap. Raises InvalidTask.
    """
    if not isinstance(expression, str) or len(expression) > LONGEST_EXPRESSION:
        raise InvalidTask(f"cron: the expression has to be text of at most {LONGEST_EXPRESSION} characters.")
    fields = _ALIASES.get(expression.strip().lower(), expression).split()
    if len(fields) != 5:
        raise InvalidTask(
            f"cron: {expression!r} has {len(fields)} fields, but needs five: minute, hour, day, month, weekday."
        )
    try:
        return Schedule(expression=" ".join(fields), tz=tz, **options)
    except CronSimError as error:
        raise InvalidTask(f"cron: {expression!r} makes no sense: {error}.") from error
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidTask(f"cron: {tz!r} is not a time zone: {error}.") from error
    except TypeError as error:
        raise InvalidTask(f"cron: {error}.") from error


def every(*, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0, **options: Any) -> Schedule:
    """A schedule at a fixed rate, from a tenth of a second to a year. Options as for cron(). Raises InvalidTask."""
    every_ms = round(timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days).total_seconds() * 1000)
    if not 100 <= every_ms <= 366 * 86_400_000:
        raise InvalidTask(f"every: {every_ms / 1000} s is not between 0.1 s and a year.")
    try:
        return Schedule(every_ms=every_ms, **options)
    except TypeError as error:
        raise InvalidTask(f"every: {error}.") from error


def schedules_option(owner: str, value: Any) -> tuple[Schedule, ...]:
    """The option `schedule` of a task: one or several, each with a name of its own. Raises InvalidTask."""
    entries = value if isinstance(value, list | tuple) else (value,)
    named = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Schedule):
            raise InvalidTask(f"{owner}: schedule is {entry!r}, but has to be cron(…) or every(…), or a list of them.")
        default = owner if number == 1 else f"{owner}#{number}"
        named.append(entry if entry.name else replace(entry, name=default))
    return tuple(named)


def schedule_from_settings(name: str, options: Mapping[str, Any]) -> Schedule:
    """An entry of RTQ["SCHEDULES"]: "cron" or "every" (seconds), and the options of a schedule. Raises InvalidTask."""
    rest = {key: value for key, value in options.items() if key not in ("task", "cron", "every", "tz")}
    if ("cron" in options) == ("every" in options):
        raise InvalidTask(f'RTQ["SCHEDULES"][{name!r}] has to have either "cron" or "every" (seconds).')
    if "cron" in options:
        return cron(options["cron"], tz=options.get("tz", ""), name=name, **rest)
    return every(seconds=options["every"], name=name, **rest)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
