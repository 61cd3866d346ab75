"""Histograms of durations: the buckets that workers count in, and the percentiles that people are shown.

A bucket is a quarter of an octave wide, whatever the unit. Bucket 0 is for a duration of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp

BUCKETS = 8  # bucket numbers of an octave; the lower half of them is not used, so that 0 is free


def bucket_of(number: float) -> int:
    """The number of the bucket for a duration."""
    fraction, octave = frexp(number)  # the fraction is 0.5 to 1
    return int(fraction * BUCKETS) + octave * BUCKETS


def midpoint_of(bucket: int) -> float:
    """The duration in the middle of a bucket."""
    octave, eighths = divmod(bucket, BUCKETS)
    return float((eighths + 0.5) / BUCKETS * 2.0**octave) if bucket else 0.0


def upper_bound(bucket: int) -> float:
    """The next power of two, which the durations in the bucket are below; 0 for bucket 0."""
    return float(2.0 ** (bucket // BUCKETS)) if bucket else 0.0


def percentile(buckets: Mapping[int, int], share: float) -> float | None:
    """The duration that this share (0 to 1) of all is shorter than, as exact as a bucket is wide; None if empty."""
    left = sum(buckets.values()) * share
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return midpoint_of(bucket)
    return None
