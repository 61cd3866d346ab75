"""Unique jobs: what a duplicate costs beside delay() of a job that is not unique."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.figures import Readings
from benchmarks.stage import Stage

CALLS = 500  # that are alike
SLICE = 100  # of them before it is the other's turn


def measure(stage: Stage, readings: Readings) -> None:
    """One round: several times so many calls, of one task and of the other by turns."""
    from benchmarks.jobs import noop, noop_once

    plain = unique = 0.0
    turns = 3 if stage.is_quick else 12
    for turn in range(turns + 1):
        stage.clear()
        noop_once.delay(7, 42)
        for _ in range(CALLS // SLICE):
            spent = _seconds(noop.delay), _seconds(noop_once.delay)
            if turn:  # the first one loads the scripts and connects
                plain, unique = plain + spent[0], unique + spent[1]
    readings.add("unique.jobs", stage.redis.hlen("{rtq:default}:jobs") - CALLS)  # but those of noop
    readings.add("unique.plain", turns * CALLS / plain)
    readings.add("unique.duplicates", turns * CALLS / unique)
    readings.ratio("unique.cost_vs_plain", "unique.plain", "unique.duplicates")  # rates: the other way round


def _seconds(delay: Callable[[int, int], object]) -> float:
    """The time that these calls take."""
    started = time.perf_counter()
    for _ in range(SLICE):
        delay(7, 42)
    return time.perf_counter() - started
