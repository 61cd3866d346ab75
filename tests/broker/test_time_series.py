"""The counters of the last minutes, in steps."""

import pytest

from tests.support.jobs import QUEUE


@pytest.fixture
def minute(redis):
    """The present one, of which some time is left."""
    seconds, _ = redis.time()
    return seconds // 60


def set_counters(redis, broker, minute, **counters):
    redis.hset(broker.keys.of(QUEUE).stats_of(minute), mapping=counters)


def test_each_minute_has_its_number_and_the_present_one_is_the_last(redis, broker, inspector, minute):
    set_counters(redis, broker, minute, succeeded=3)
    set_counters(redis, broker, minute - 2, succeeded=5, failed=1)

    series = inspector.overview.time_series(QUEUE, 4)

    assert (series.of("succeeded"), series.of("failed")) == ([0, 5, 0, 3], [0, 1, 0, 0])
    assert (series.step_seconds, series.steps) == (60, 4)
    assert series.begins_at.timestamp() == (minute - 3) * 60


def test_what_is_older_is_left_out(redis, broker, inspector, minute):
    set_counters(redis, broker, minute - 4, succeeded=5)

    assert inspector.overview.time_series(QUEUE, 4).counts == {}


def test_minutes_are_added_up_in_steps_that_begin_at_round_times(redis, broker, inspector, minute):
    first = minute // 5 * 5
    for place in range(-5, minute - first + 1):
        set_counters(redis, broker, first + place, dead=1)

    series = inspector.overview.time_series(QUEUE, 10, step=5)

    assert series.of("dead") == [5, minute - first + 1]
    assert series.begins_at.timestamp() == (first - 5) * 60


def test_what_never_happened_is_nought(redis, inspector):
    series = inspector.overview.time_series("never", 3)

    assert series.of("succeeded") == [0, 0, 0]
    assert (series.total("succeeded"), series.total("succeeded", 2)) == (0, 0)


def test_the_last_steps_can_be_added_up_alone(redis, broker, inspector, minute):
    for place, number in enumerate((1, 10, 100)):
        set_counters(redis, broker, minute - 2 + place, succeeded=number)

    series = inspector.overview.time_series(QUEUE, 3)

    assert (series.total("succeeded"), series.total("succeeded", 2)) == (111, 110)


def test_more_than_two_days_are_read_in_steps_of_whole_hours(redis, inspector):
    two_days, week = inspector.overview.time_series(QUEUE, 2880), inspector.overview.time_series(QUEUE, 10_080)

    assert (two_days.steps, two_days.step_seconds) == (60, 48 * 60)
    assert (week.steps, week.step_seconds) == (56, 3 * 3600)


def test_30_days_are_the_most(redis, inspector):
    series = inspector.overview.time_series(QUEUE, 1_000_000)

    assert (series.steps, series.step_seconds) == (60, 12 * 3600)
