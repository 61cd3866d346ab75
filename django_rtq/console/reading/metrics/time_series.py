"""Time series: the counters of a queue by the minute, for two days, and by the hour, for 30 days.

Past minutes do not change. So a process keeps those of the last hour and reads only the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from django_rtq.console.reading.queues import ask, asking
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment

MOST_MINUTES = 2880  # that are kept
AT_ONCE = 120  # minutes that one script call reads, or hours that are rolled up
HOUR = 60  # minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counters over time. Each list has one number for each step, the current step last."""

    begins_at: datetime  # the first step
    step_seconds: int
    steps: int
    counts: Mapping[str, list[int]]  # enqueued, succeeded, failed, dead, …, run_ms, wait_ms -> numbers

    def of(self, name: str) -> list[int]:
        """The numbers of one counter."""
        return self.counts.get(name) or [0] * self.steps

    def total(self, name: str, steps: int | None = None) -> int:
        """The sum of one counter, over all steps or the last ones."""
        numbers = self.of(name)
        return sum(numbers if steps is None else numbers[-steps:])

    @property
    def last(self) -> int:
        """The number of the current step, counted from 1970."""
        return int(self.begins_at.timestamp()) // self.step_seconds + self.steps - 1


def merge_series(series: Sequence[Series]) -> Series:
    """The sums of these counters, step by step from the last one."""
    names, steps = set[str]().union(*(one.counts for one in series)), series[0].steps
    lists = {name: [one.of(name)[-steps:] for one in series] for name in names}
    sums = {name: list(map(sum, zip(*of_all, strict=True))) for name, of_all in lists.items()}
    return replace(series[0], counts=sums)


class TimeSeriesReader:
    """Reads series. Any thread may use it: what is kept is replaced, never changed."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys
        self._hours: dict[str, Series] = {}  # by queue

    def last_hours(self, queues: Sequence[str], now_ms: int) -> Steps[list[Series]]:
        """Read the last hour of these queues by the minute. One round trip: asks for the minutes that are not known."""
        known, present = {queue: self._hours.get(queue) for queue in queues}, now_ms // 60_000
        # The last minute was not over then, and another may begin before the command arrives.
        minutes = {queue: min(HOUR, max(2, present - of.last + 2)) if of else HOUR for queue, of in known.items()}
        replies = yield from asking({queue: [self._call(queue, number, 1)] for queue, number in minutes.items()})
        for queue, reply in replies.items():
            series, before = _series(reply, 1), known[queue]
            if series.steps < HOUR:
                joined = None if before is None else _joined(before, series)
                # Or else the clock was put back, or it is another Redis: read it all.
                series = joined or _series(checked((yield [self._call(queue, HOUR, 1)])), 1)
            self._hours[queue] = series
        return [self._hours[queue] for queue in queues]

    def history(self, queues: Sequence[str], minutes: int, step: int, now_ms: int) -> list[Series]:
        """The last `minutes` of these queues in steps of so many, in one round trip. `now_ms`: the server's time.

        Beyond two days the steps are whole hours. At most 30 days are kept.
        """
        replies = ask(self._redis, {queue: self._calls(queue, minutes, step, now_ms) for queue in queues})
        return [_series(of_queue, step) for of_queue in replies.values()]

    def _call(self, queue: str, minutes: int, step: int, begins: int = 0, ends: int = 0) -> Command:
        return SCRIPTS["time_series"].call(self._keys.of(queue), (minutes, step, begins, ends))

    def _calls(self, queue: str, minutes: int, step: int, now_ms: int) -> list[Command]:
        """The commands for so many minutes. None reads many counters."""
        present = now_ms // 60_000
        first = (present // step - -(-minutes // step) + 1) * step
        oldest = (present - MOST_MINUTES) // 60 * 60  # hours are read as a whole
        cuts = [0, *range(max(first, oldest) + AT_ONCE, present + 1, AT_ONCE), 0]
        if first < oldest:
            cuts[1:1] = [*range(first + AT_ONCE * 60, oldest, AT_ONCE * 60), oldest]
        return [self._call(queue, minutes, step, begins, ends) for begins, ends in pairwise(cuts)]


def _series(replies: Sequence[list[Any]], step: int) -> Series:
    """From the replies to the commands of one series. A step may begin between two of them."""
    now_ms, steps, *_ = replies[-1]
    first = now_ms // 60_000 // step - steps + 1
    counts: dict[str, list[int]] = {}
    for at, *pairs in (entry for reply in replies for entry in reply[2:]):
        for name, number in zip(pairs[::2], pairs[1::2], strict=True) if 0 <= at - first < steps else ():
            counts.setdefault(name.decode(), [0] * steps)[at - first] += number
    begins_at = clock_moment(first * step * 60_000)
    return Series(begins_at=begins_at, step_seconds=step * 60, steps=steps, counts=counts)


def _joined(known: Series, latest: Series) -> Series | None:
    """The past steps of the known series, then the latest; None if they do not fit together."""
    first, begins = latest.last - known.steps + 1, latest.last - latest.steps + 1
    start, over = first - (known.last - known.steps + 1), known.last - begins
    if start < 0 or over < 0:
        return None
    counts: dict[str, list[int]] = {}
    for name in {**known.counts, **latest.counts}:
        before, now = known.of(name), latest.of(name)
        if before[-1 - over : -1] != now[:over] or before[-1] > now[over]:
            return None  # a past step is another, or a counter of the next one went down
        counts[name] = before[start : start + known.steps - latest.steps] + now
    begins_at = clock_moment(first * known.step_seconds * 1000)
    return Series(begins_at=begins_at, step_seconds=known.step_seconds, steps=known.steps, counts=counts)
