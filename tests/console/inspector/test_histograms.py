"""Bars of a histogram, from the buckets that workers count in."""

from itertools import pairwise

import pytest

from django_rtq.console.inspector.metrics.histograms import bars
from django_rtq.core.broker.histogram import bucket_of


def test_each_duration_lies_between_the_bounds_of_its_bar():
    for duration in (0.001, 0.124, 0.5, 0.99, 1.0, 3.0, 3599.0, 1e6):
        (bar,) = bars({bucket_of(duration): 7})
        assert bar.lower <= duration < bar.upper
        assert bar.number == 7


def test_bars_are_adjacent_and_cover_gaps():
    found = bars({bucket_of(1.0): 1, bucket_of(4.0): 2})
    assert [bar.number for bar in found] == [1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert all(first.upper == second.lower for first, second in pairwise(found))


@pytest.mark.parametrize("most", [2, 7, 32])
def test_they_are_joined_until_they_fit(most):
    buckets = {bucket_of(2.0**octave): 1 for octave in range(-20, 21)}
    found = bars(buckets, most)
    assert 1 <= len(found) <= most
    assert sum(bar.number for bar in found) == 41
    assert found[0].lower <= 2.0**-20
    assert found[-1].upper > 2.0**20


def test_no_time_at_all_is_counted_with_the_shortest():
    assert [bar.number for bar in bars({0: 5, bucket_of(3.0): 1})] == [6]
    assert [bar.number for bar in bars({0: 5})] == [5]


def test_nothing_has_no_bars():
    assert bars({}) == bars({0: 0}) == []
