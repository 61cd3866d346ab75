"""Which moments a cron expression means, in a time zone with all its oddities.

Days are taken one by one, by the calendar on the wall; then the zone says which moments the times of that day are:
one each, but none in the hour that daylight saving skips, and two in the one that comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

LONGEST_DAYS = 50 * 366  # an expression that fits none of so many days never will
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


class CronExpression:
    """A cron expression in a zone. Raises CronSimError, ZoneInfoNotFoundError or ValueError for what is neither."""

    def __init__(self, expression: str, zone: str) -> None:
        spec = CronSim(expression, _EPOCH)
        minute, hour = expression.split()[:2]
        self._zone = ZoneInfo(zone)
        self._spec = spec
        self._minutes = sorted(60 * h + m for h in spec.hours for m in spec.minutes)  # of a day
        self._odd_days: dict[date, list[int]] = {}
        # As cron on Debian has it: "at half past two" has to happen once a day, "every hour" as often as hours begin.
        self._is_fixed = not minute.startswith("*") and not hour.startswith("*")

    def after(self, ms: int) -> Iterator[int]:
        """The moments after this one, in ms since 1970; it ends after fifty years."""
        day = self._day_of(ms)
        for number in range(LONGEST_DAYS):
            yield from (moment for moment in self._moments_of(day + number * _DAY) if moment > ms)

    def until(self, ms: int) -> Iterator[int]:
        """The moments up to and with this one, the newest first, back to 1970."""
        day = self._day_of(ms)
        while day >= _EPOCH.date():
            yield from (moment for moment in reversed(self._moments_of(day)) if moment <= ms)
            day -= _DAY

    def explain(self) -> str:
        """In words."""
        return self._spec.explain()

    def _day_of(self, ms: int) -> date:
        return datetime.fromtimestamp(ms / 1000, tz=self._zone).date()

    def _moments_of(self, day: date) -> list[int]:
        if day.month not in self._spec.months or not self._spec.match_day(day):
            return []
        start = datetime.combine(day, time(), tzinfo=self._zone)
        if self._has_one_offset(start):
            start_ms = _ms(start)
            return [start_ms + minute * 60_000 for minute in self._minutes]
        moments = self._odd_days.get(day)
        if moments is None:
            midnight = datetime.combine(day, time())
            moments = sorted({ms for minute in self._minutes for ms in self._moments(midnight + minute * _MINUTE)})
            self._odd_days = {day: moments}  # only one, because clocks are put forward and back twice a year
        return moments

    @staticmethod
    def _has_one_offset(start: datetime) -> bool:
        edges = [midnight.replace(fold=fold) for midnight in (start, start + _DAY) for fold in (0, 1)]
        return len({edge.utcoffset() for edge in edges}) == 1

    def _moments(self, wall: datetime) -> list[int]:
        first, second = (wall.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1))
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


@lru_cache(maxsize=1024)
def get_cron_expression(expression: str, zone: str) -> CronExpression:
    """The clock for an expression, read once. Raises as CronExpression does."""
    return CronExpression(expression, zone)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
