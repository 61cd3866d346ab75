"""Schedules of periodic jobs: cron expressions and fixed intervals.

A slot is a moment at which a schedule fires. Slots depend on the definition and the clock only, so all schedulers
compute the same ones; the script `fire_schedule` makes sure that each starts one job.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from itertools import count, islice, takewhile
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django_rtq.core.conf.config import time_zone_name
from django_rtq.core.conf.option import accepts, number, one_of, option, options_of, text
from django_rtq.core.jobs.job import EPOCH
from django_rtq.core.validation import MAX_CAP, MAX_EXPRESSION_LENGTH, MAX_MISSED, MAX_NAME_LENGTH, did_you_mean
from django_rtq.exceptions import InvalidTask

MISSED_SECONDS = 60  # a slot that is older than that was missed
MAX_DAYS = 50 * 366  # an expression that matches none of so many days never will
_DAY, _MINUTE, _SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)
START_FORMAT = "%Y-%m-%d %H:%M:%S UTC"
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


_KWARGS = accepts(
    lambda value: isinstance(value, Mapping) and all(isinstance(name, str) for name in value),
    "a dictionary of names and values",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a task is started periodically, and with which arguments. Made by cron() and every()."""

    expression: str = ""  # the five fields of cron, or six: seconds first
    tz: str = ""  # time zone of the expression; "": TIME_ZONE of the settings
    every_ms: int = 0  # or a fixed interval, so that it does not drift
    start_ms: int = 0  # from which its slots are counted, ms since 1970; there is none before
    name: str = option("", text(MAX_NAME_LENGTH))  # "": the name of the task
    args: Sequence[Any] = option((), accepts(lambda value: isinstance(value, list | tuple), "a list"))
    kwargs: Mapping[str, Any] = option({}, _KWARGS)
    missed: Literal["skip", "once", "all"] = option("once", one_of("skip", "once", "all"))  # if no scheduler ran then
    cap: int = option(MAX_MISSED, number(least=1, most=MAX_CAP, whole=True))  # the newest slots that missed="all" fires
    overlap: Literal["allow", "skip"] = option("allow", one_of("allow", "skip"))  # while its last job is not over

    def __post_init__(self) -> None:
        for name, declared in _OPTIONS.items():
            declared.kind.checked(f"schedule: {name}", getattr(self, name), InvalidTask)
        if not self.every_ms and next(self._clock.after(0), None) is None:
            raise InvalidTask(f"cron: {self.expression!r} matches no date.")

    @property
    def zone(self) -> str:
        """The name of the time zone of a cron expression."""
        return self.tz or time_zone_name()

    @property
    def start(self) -> datetime | None:
        """The moment from which its slots are counted, in UTC. None: 1970, or it is a cron expression."""
        return datetime.fromtimestamp(self.start_ms / 1000, tz=timezone.utc) if self.start_ms else None

    @property
    def definition(self) -> str:
        """A digest of the moments. If it changes, the schedule counts slots from then on, and has missed none."""
        moments = f"every {self.every_ms}" if self.every_ms else f"{self.expression} {self.zone}"
        if self.start_ms:
            moments += f" from {self.start_ms}"
        return hashlib.sha256(moments.encode()).hexdigest()[:12]

    def next_ms(self, after_ms: int) -> int:
        """The first slot after a moment, in milliseconds since 1970."""
        if self.every_ms:
            return max(self.start_ms, after_ms - (after_ms - self.start_ms) % self.every_ms + self.every_ms)
        return next(self._clock.after(after_ms))

    def due(self, last_ms: int, now_ms: int) -> list[int]:
        """The slots after `last_ms` to fire now, oldest first, by the policy for missed ones.

        Computes no more slots than it returns, however long no scheduler was running.
        """
        missed = takewhile(lambda slot: slot > last_ms, self._backwards(now_ms))
        slots = list(islice(missed, self.cap if self.missed == "all" else 1))
        if self.missed == "skip" and slots and slots[0] < now_ms - MISSED_SECONDS * 1000:
            return []
        return slots[::-1]

    def explain(self) -> str:
        """The schedule in English."""
        if self.every_ms:
            words = f"Every {_duration_in_words(self.every_ms)}"
            return f"{words}, counted from {self.start:{START_FORMAT}}" if self.start else words
        return f"{self._clock.explain()} ({self.zone})"

    @property
    def _clock(self) -> CronExpression:
        return get_cron_expression(self.expression, self.zone)

    def _backwards(self, now_ms: int) -> Iterator[int]:
        if self.every_ms:
            slots = count(now_ms - (now_ms - self.start_ms) % self.every_ms, -self.every_ms)
            return takewhile(lambda slot: slot >= self.start_ms, slots)
        return self._clock.until(now_ms)


def cron(expression: str, *, tz: str = "", **options: Any) -> Schedule:
    """A schedule by the five fields of cron ("0 5 * * mon-fri"), or @hourly, @daily, @weekly, @monthly, @yearly.

    Of six fields the first is the second. A "?" means "*". A local time that daylight saving time skips fires when the
    gap ends, and one that exists twice fires once. But if minute or hour begin with a star, it fires whenever the local
    time matches: not in a gap, and twice in that hour.
    Options: name, args, kwargs, missed, cap, overlap. Raises InvalidTask.
    """
    from cronsim import CronSimError

    _check_names("cron", options)
    _EXPRESSION.checked("cron: the expression", expression, InvalidTask)
    fields = _ALIASES.get(expression.strip().lower(), expression).split()
    if len(fields) not in (5, 6):
        raise InvalidTask(
            f"cron: {expression!r} has {len(fields)} fields, but needs five: minute, hour, day, month, weekday; or "
            "six, with the second before them."
        )
    fields = ["*" if text == "?" else text for text in fields]
    try:
        ZoneInfo(tz or time_zone_name())
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise InvalidTask(f"cron: {tz!r} is not a time zone.") from error
    try:
        return Schedule(expression=" ".join(fields), tz=tz, **options)
    except CronSimError as error:
        raise InvalidTask(f"cron: {expression!r} is invalid: {error}.") from error


def every(
    *,
    seconds: float = 0,
    minutes: float = 0,
    hours: float = 0,
    days: float = 0,
    start: float | timedelta | datetime = 0,
    **options: Any,
) -> Schedule:
    """A schedule at a fixed interval, from a tenth of a second to a year, counted from 1970 (UTC).

    `start` moves its slots by seconds or a timedelta: every(hours=1, start=600) is ten minutes past each hour. An aware
    datetime is the first slot. Options as for cron(). Raises InvalidTask.
    """
    _check_names("every", options)
    try:
        for given in (seconds, minutes, hours, days):
            if isinstance(given, bool):  # which Python takes for 0 or 1
                raise TypeError(f"{given} is no number")
        length = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTask(f"every: this is not a duration: {error}.") from error
    every_ms = round(length.total_seconds() * 1000)
    if not 100 <= every_ms <= 366 * 86_400_000:
        raise InvalidTask(f"every: {length.total_seconds():g} s is not between 0.1 s and a year.")
    return Schedule(every_ms=every_ms, start_ms=_start_ms(start, every_ms), **options)


def named_schedules(owner: str, value: Any) -> Iterator[Schedule]:
    """The option `schedule` of a task: one schedule or several, each gets a name. Raises InvalidTask."""
    entries = value if isinstance(value, list | tuple) else (value,)
    for place, entry in enumerate(entries, start=1):
        if not isinstance(entry, Schedule):
            raise InvalidTask(f"{owner}: schedule is {entry!r}, but has to be cron(…) or every(…), or a list of them.")
        default = owner if place == 1 else f"{owner}#{place}"
        yield entry if entry.name else replace(entry, name=default)


def schedule_from_settings(name: str, options: Mapping[str, Any]) -> Schedule:
    """An entry of RTQ["SCHEDULES"]: "cron" or "every" (seconds), and the options of a schedule. Raises InvalidTask."""
    rest = {key: value for key, value in options.items() if key not in ("task", "cron", "every")}
    if "start" in rest and "every" not in options:
        raise InvalidTask('"start" belongs to "every".')
    if ("cron" in options) == ("every" in options):
        raise InvalidTask('exactly one of "cron" and "every" (seconds) is required.')
    if "name" in rest:
        raise InvalidTask('"name" is not an option here: the key is the name.')
    if "cron" in options:
        return cron(options["cron"], name=name, **rest)
    return every(seconds=options["every"], name=name, **rest)


_EXPRESSION = accepts(
    lambda value: isinstance(value, str) and len(value) <= MAX_EXPRESSION_LENGTH,
    f"text of at most {MAX_EXPRESSION_LENGTH} characters",
)
_OPTIONS = options_of(Schedule)
_OWN = {"cron": ("tz",), "every": ("seconds", "minutes", "hours", "days", "start")}
_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000))


def _check_names(maker: str, options: Mapping[str, Any]) -> None:
    takes = (*_OWN[maker], *_OPTIONS)
    for name in options:
        if name not in _OPTIONS:
            hint = did_you_mean(name, takes)
            raise InvalidTask(f"{maker}: unknown option {name!r}.{hint} It takes: {', '.join(takes)}.")


def _start_ms(start: Any, every_ms: int) -> int:
    """The moment from which slots are counted; from 1970 on, if it is none but an offset."""
    if isinstance(start, datetime) and start.tzinfo is not None:
        return round(start.timestamp() * 1000)
    if isinstance(start, int | float) and not isinstance(start, bool) and math.isfinite(start):
        return round(start * 1000) % every_ms
    if isinstance(start, timedelta):
        return round(start.total_seconds() * 1000) % every_ms
    raise InvalidTask(f"every: start is {start!r}, but has to be seconds, a timedelta or an aware datetime.")


def _duration_in_words(ms: int) -> str:
    parts = []
    for unit, size in _UNITS:
        number, ms = divmod(ms, size)
        if number:
            parts.append(f"{number} {unit}s" if number > 1 else f"1 {unit}")
    if ms:
        parts.append("second" if ms == 1000 and not parts else f"{ms / 1000:g} s")
    return " ".join(parts) if len(parts) > 1 else parts[0].removeprefix("1 ")


# -- cron expressions: the moments that they match in a time zone


class CronExpression:
    """A cron expression in a time zone. Raises CronSimError, ZoneInfoNotFoundError or ValueError if one is invalid.

    The calendar days are searched one by one. The times of a matching day are converted with the offset of the zone: a
    local time exists once, but not at all in the hour that daylight saving time skips, and twice when clocks are put
    back.
    """

    def __init__(self, expression: str, zone: str) -> None:
        from cronsim import CronSim  # projects without cron expressions do not need it

        spec = CronSim(expression, EPOCH)
        minute, hour = expression.split()[-5:-3]
        self._zone = ZoneInfo(zone)
        self._spec = spec
        #: Seconds of a day that match.
        self._seconds = sorted(3600 * h + 60 * m + s for h in spec.hours for m in spec.minutes for s in spec.seconds)
        self._irregular_days: dict[date, list[int]] = {}
        # As cron on Debian: "30 2 * * *" has to run once a day, "0 * * * *" whenever an hour begins.
        self._is_fixed = not minute.startswith("*") and not hour.startswith("*")

    def after(self, ms: int) -> Iterator[int]:
        """The moments after this one, in ms since 1970. Ends after fifty years."""
        day = self._day_of(ms)
        for days in range(MAX_DAYS):
            yield from (moment for moment in self._moments_of(day + days * _DAY) if moment > ms)

    def until(self, ms: int) -> Iterator[int]:
        """The moments up to this one, inclusive, newest first, back to 1970."""
        day = self._day_of(ms)
        while day >= EPOCH.date():
            yield from (moment for moment in reversed(self._moments_of(day)) if moment <= ms)
            day -= _DAY

    def explain(self) -> str:
        """The expression in English."""
        return self._spec.explain()

    def _day_of(self, ms: int) -> date:
        return datetime.fromtimestamp(ms / 1000, tz=self._zone).date()

    def _moments_of(self, day: date) -> list[int]:
        if day.month not in self._spec.months or not self._spec.match_day(day):
            return []
        start = datetime.combine(day, time(), tzinfo=self._zone)
        edges = [midnight.replace(fold=fold) for midnight in (start, start + _DAY) for fold in (0, 1)]
        if len({edge.utcoffset() for edge in edges}) == 1:
            start_ms = _ms(start)
            return [start_ms + second * 1000 for second in self._seconds]
        moments = self._irregular_days.get(day)
        if moments is None:
            midnight = datetime.combine(day, time())
            moments = sorted({ms for second in self._seconds for ms in self._moments(midnight + second * _SECOND)})
            self._irregular_days = {day: moments}  # only one is cached: the offset changes twice a year
        return moments

    def _moments(self, local: datetime) -> list[int]:
        first, second = (local.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
        if self._is_skipped(first):
            if not self._is_fixed:
                return []
            while self._is_skipped(first):
                first += _MINUTE
            return [_ms(first)]
        return [_ms(first)] if self._is_fixed else [_ms(first), _ms(second)]

    def _is_skipped(self, moment: datetime) -> bool:
        back = moment.astimezone(timezone.utc).astimezone(self._zone)
        return back.replace(tzinfo=None) != moment.replace(tzinfo=None)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


get_cron_expression = lru_cache(maxsize=1024)(CronExpression)
