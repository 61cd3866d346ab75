"""Tasks of which runs failed lately: by the minute, and how many failed in a row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import sqrt
from typing import Any, NamedTuple

from django_rtq.core.jobs.job import clock_moment

LATELY = 5  # minutes that rates are averaged over
LEAST_COMPARED = 50  # runs; fewer say nothing about another share
LEAST_IN_A_ROW = 10  # with fewer, it is not told how many failed in a row


class Runs(NamedTuple):
    """How many runs there were, and how many of them failed."""

    failed: int = 0
    runs: int = 0

    @property
    def rate(self) -> float:
        """The share that failed, 0 to 1."""
        return self.failed / self.runs if self.runs else 0.0

    def is_worse(self, than: Runs) -> bool:
        """Whether clearly more of these failed, and not by chance: by half of the share, 2 % and four deviations."""
        if min(self.runs, than.runs) < LEAST_COMPARED:
            return False
        together = self + than
        deviation = sqrt(together.rate * (1 - together.rate) * (1 / self.runs + 1 / than.runs))
        return self.rate - than.rate >= max(0.5 * than.rate, 0.02, 4 * deviation)

    def __add__(self, other: Any) -> Runs:
        return Runs(self.failed + other.failed, self.runs + other.runs)


NONE = Runs()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailures:
    """The last runs of a task of which some failed."""

    in_a_row: int = 0  # runs that failed since the last that succeeded; 0: fewer than LEAST_IN_A_ROW
    since: datetime | None = None  # when the first of these failed
    minutes: dict[int, Runs] = field(default_factory=dict)  # minute since 1970 -> its runs; the last LATELY at most
    hours: Runs = NONE  # of this hour and the one before
    #: The two newest versions of the project -> its runs with them, the newest first, if there are two.
    versions: dict[str, Runs] = field(default_factory=dict)

    @property
    def lately(self) -> Runs:
        """Its runs in these minutes."""
        return sum(self.minutes.values(), NONE)


def read_task_failures(streaks: Sequence[bytes], periods: Sequence[Any]) -> dict[str, TaskFailures]:
    """Read parts of the reply of the script `queue_activity`, by task."""
    failures: defaultdict[str, TaskFailures] = defaultdict(TaskFailures)
    for minute, numbers in periods:
        for task, failed, done in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            name = task.decode(errors="replace")
            runs = Runs(int(failed), int(failed) + int(done))
            if minute == 0:
                failures[name] = replace(failures[name], hours=runs)
            elif isinstance(minute, int):
                failures[name].minutes[minute] = runs
            else:
                failures[name].versions[minute.decode(errors="replace")] = runs
    for name, streak in zip(streaks[::2], streaks[1::2], strict=True):
        task, (number, since, _good) = name.decode(errors="replace"), map(int, streak.split())
        failures[task] = replace(failures[task], in_a_row=number, since=clock_moment(since))
    return dict(failures)
