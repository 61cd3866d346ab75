"""Cron expressions: the moments that they match in a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

MAX_DAYS = 50 * 366  # an expression that matches none of so many days never will
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)


class CronExpression:
    """A cron expression in a time zone. Raises CronSimError, ZoneInfoNotFoundError or ValueError if one is invalid.

    The calendar days are searched one by one. The times of a matching day are converted with the offset of the zone: a
    local time exists once, but not at all in the hour that daylight saving time skips, and twice when clocks are put
    back.
    """

    def __init__(self, expression: str, zone: str) -> None:
        spec = CronSim(expression, _EPOCH)
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
        for number in range(MAX_DAYS):
            yield from (moment for moment in self._moments_of(day + number * _DAY) if moment > ms)

    def until(self, ms: int) -> Iterator[int]:
        """The moments up to this one, inclusive, newest first, back to 1970."""
        day = self._day_of(ms)
        while day >= _EPOCH.date():
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
