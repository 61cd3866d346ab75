"""Histograms of durations as bars to draw, from the buckets of metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django_rtq.core.broker.histogram import BUCKETS

_QUARTERS = BUCKETS // 2  # buckets of an octave that are used


class Bar(NamedTuple):
    """The number of durations between two bounds."""

    lower: float
    upper: float
    number: int


def bars(buckets: Mapping[int, int], most: int = 32) -> list[Bar]:
    """The bars from the shortest to the longest duration, `most` (2 or more) at the most, equally wide on a log scale.

    Buckets are joined until they fit. Durations of zero are counted with the shortest others.
    """
    counts = _by_quarter(buckets)
    if not counts:
        return []
    width = 1
    while max(counts) // width - min(counts) // width >= most:
        width *= 2
    places = range(min(counts) // width, max(counts) // width + 1)
    return [
        Bar(
            _lower_bound(place * width),
            _lower_bound((place + 1) * width),
            sum(counts.get(place * width + i, 0) for i in range(width)),
        )
        for place in places
    ]


def _by_quarter(buckets: Mapping[int, int]) -> dict[int, int]:
    """The numbers by quarter of an octave, counted from a duration of 0.5 on."""
    counts = {
        bucket // BUCKETS * _QUARTERS + bucket % BUCKETS - _QUARTERS: number
        for bucket, number in buckets.items()
        if bucket
    }
    if buckets.get(0):
        shortest = min(counts, default=0)
        counts[shortest] = counts.get(shortest, 0) + buckets[0]
    return counts


def _lower_bound(quarter: int) -> float:
    octave, part = divmod(quarter, _QUARTERS)
    return float((_QUARTERS + part) / BUCKETS * 2.0**octave)
