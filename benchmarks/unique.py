"""Unique jobs: the cost of a duplicate compared with delay() of a plain job."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.environment import Environment
from benchmarks.figures import Readings

CALLS = 500  # equal calls
SLICE = 100  # of them in a row


def measure(env: Environment, readings: Readings) -> None:
    """One round: calls of both tasks, in turn."""
    from benchmarks.jobs import noop, noop_once

    plain = unique = 0.0
    turns = 3 if env.is_quick else 12
    for turn in range(turns + 1):
        env.clear()
        noop_once.delay(7, 42)
        for _ in range(CALLS // SLICE):
            spent = _seconds(noop.delay), _seconds(noop_once.delay)
            if turn:  # the first turn loads the scripts and connects
                plain, unique = plain + spent[0], unique + spent[1]
    readings.add("unique.jobs", env.redis.hlen("{rtq:default}:jobs") - CALLS)  # without those of noop
    readings.add("unique.plain", turns * CALLS / plain)
    readings.add("unique.duplicates", turns * CALLS / unique)
    readings.ratio(
        "unique.cost_vs_plain", "unique.plain", "unique.duplicates"
    )  # these are rates, so the ratio of times is inverse


def _seconds(delay: Callable[[int, int], object]) -> float:
    """The time of one slice of calls."""
    started = time.perf_counter()
    for _ in range(SLICE):
        delay(7, 42)
    return time.perf_counter() - started
