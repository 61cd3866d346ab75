"""Unique jobs: what a duplicate costs beside delay() of a job that is not unique."""

from __future__ import annotations

import time

from benchmarks.figures import Readings
from benchmarks.stage import Stage

CALLS = 500  # that are alike, before it is the other's turn


def measure(stage: Stage, readings: Readings) -> None:
    """One round: by turns so many calls of one task and of the other."""
    from benchmarks.jobs import noop, noop_once

    plain = unique = 0.0
    turns = 3 if stage.is_quick else 12
    for turn in range(turns + 1):
        stage.clear()
        noop.delay(7, 42)  # loads the script, and connects
        noop_once.delay(7, 41)
        spent_plain, spent_unique = _seconds(noop), _seconds(noop_once)
        jobs = stage.redis.hlen("{rtq:default}:jobs") - CALLS - 2
        if turn:  # the first one warms up
            plain, unique = plain + spent_plain, unique + spent_unique
    readings.add("unique.jobs", jobs)
    readings.add("unique.plain", turns * CALLS / plain)
    readings.add("unique.duplicates", turns * CALLS / unique)
    readings.ratio("unique.cost_vs_plain", "unique.plain", "unique.duplicates")  # rates: the other way round


def _seconds(task: object) -> float:
    """The time that these calls take."""
    delay = task.delay  # type: ignore[attr-defined]
    started = time.perf_counter()
    for _ in range(CALLS):
        delay(7, 42)
    return time.perf_counter() - started
