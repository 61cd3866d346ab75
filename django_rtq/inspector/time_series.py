"""What happened when: counters, minute by minute.

What is over does not change any more. A process keeps it, and asks for the last steps only: fifty queues with a day of
minutes each would cost a third of a second, again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_rtq.broker.broker import Broker
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.jobs.job import clock_moment

MOST_KEPT = 1000  # series; of some 50 KB, where much happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Counters over time. Every list of numbers is as long as there are steps, the present one the last."""

    begins_at: datetime  # the first step
    step_seconds: int
    steps: int
    counts: Mapping[str, list[int]]  # enqueued, succeeded, failed, dead, …, run_ms, wait_ms -> a number for each step

    def of(self, name: str) -> list[int]:
        """One counter, step by step."""
        return self.counts.get(name) or [0] * self.steps

    def total(self, name: str, steps: int | None = None) -> int:
        """One counter, added up; of the last steps only, when that is asked."""
        numbers = self.of(name)
        return sum(numbers if steps is None else numbers[-steps:])

    @property
    def last(self) -> int:
        """The number of the present step, counted from 1970."""
        return int(self.begins_at.timestamp()) // self.step_seconds + self.steps - 1


class TimeSeriesReader:
    """Reads series. Any thread may use it: what is kept is replaced, and never changed."""

    def __init__(self, broker: Broker) -> None:
        self._redis, self._keys = broker.redis, broker.keys
        self._kept: dict[tuple[str, int, int], Series] = {}

    def ask(self, queue: str, minutes: int, step: int, now_ms: int) -> Command:
        """The command whose reply read() reads: for what is not known yet, and one step more."""
        kept = self._kept.get((queue, minutes, step))
        if kept is not None:
            # The last one was not over then. The clock may go on before the command arrives.
            unknown = now_ms // 60_000 // step - kept.last + 2
            minutes = min(minutes, max(2, unknown) * step)
        return SCRIPTS["time_series"].call(self._keys.of(queue), (minutes, step))

    def read(self, queue: str, minutes: int, step: int, reply: list[Any]) -> Series:
        """The whole series."""
        series = _series(reply, step)
        steps = -(-minutes // step)
        if series.steps < steps:
            kept = self._kept.get((queue, minutes, step))
            joined = None if kept is None else _joined(kept, series)
            if joined is None:  # the clock was put back, or Redis is another one: a round trip of its own
                call = SCRIPTS["time_series"].call(self._keys.of(queue), (minutes, step))
                joined = _series(self._redis.execute_one(call, resend=True), step)
            series = joined
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[(queue, minutes, step)] = series
        return series


def _series(reply: list[Any], step: int) -> Series:
    now_ms, steps, *entries = reply
    counts: dict[str, list[int]] = {}
    for place, *pairs in entries:
        for i in range(0, len(pairs), 2):
            counts.setdefault(pairs[i].decode(), [0] * steps)[place] = pairs[i + 1]
    begins_at = clock_moment((now_ms // 60_000 // step - steps + 1) * step * 60_000)
    return Series(begins_at=begins_at, step_seconds=step * 60, steps=steps, counts=counts)


def _joined(kept: Series, latest: Series) -> Series | None:
    """What is kept, as far as it is over, and then the latest; None where they do not fit together."""
    first, begins = latest.last - kept.steps + 1, latest.last - latest.steps + 1
    start = first - (kept.last - kept.steps + 1)
    if start < 0 or begins > kept.last or not _go_together(kept, latest, kept.last - begins):
        return None
    end = start + kept.steps - latest.steps
    return Series(
        begins_at=clock_moment(first * kept.step_seconds * 1000),
        step_seconds=kept.step_seconds,
        steps=kept.steps,
        counts={name: kept.of(name)[start:end] + latest.of(name) for name in {**kept.counts, **latest.counts}},
    )


def _go_together(kept: Series, latest: Series, over: int) -> bool:
    """Whether the steps that both have are the same, and no counter of the step after those went down."""
    for name in {**kept.counts, **latest.counts}:
        before, now = kept.of(name), latest.of(name)
        if before[-1 - over : -1] != now[:over] or before[-1] > now[over]:
            return False
    return True
