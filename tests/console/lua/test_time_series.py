"""The counters of the last minutes, in steps."""

import pytest

from django_rtq.console.reading.metrics.time_series import _series
from tests.support.jobs import QUEUE


def history(redis, readers, minutes, step=1, queue=QUEUE):
    return readers.overview.series.history([queue], minutes, step, int(redis.time()[0]) * 1000)[0]


def set_counters(redis, broker, minute, **counters):
    redis.hset(broker.keys.of(QUEUE).stats + b"%d" % minute, mapping=counters)


def test_each_minute_has_its_number_and_the_present_one_is_the_last(redis, broker, readers, minute):
    set_counters(redis, broker, minute, succeeded=3)
    set_counters(redis, broker, minute - 2, succeeded=5, failed=1)

    series = history(redis, readers, 4)

    assert (series.of("succeeded"), series.of("failed")) == ([0, 5, 0, 3], [0, 1, 0, 0])
    assert (series.total("succeeded"), series.total("succeeded", 2)) == (8, 3)
    assert (series.step_seconds, series.steps) == (60, 4)
    assert series.begins_at.timestamp() == (minute - 3) * 60


def test_minutes_are_added_up_in_steps_that_begin_at_round_times(redis, broker, readers, minute):
    first = minute // 5 * 5
    for place in range(-5, minute - first + 1):
        set_counters(redis, broker, first + place, dead=1)

    series = history(redis, readers, 10, 5)

    assert series.of("dead") == [5, minute - first + 1]
    assert series.begins_at.timestamp() == (first - 5) * 60


def test_what_never_happened_is_nought(redis, readers):
    series = history(redis, readers, 3, queue="never")

    assert series.of("succeeded") == [0, 0, 0]
    assert (series.total("succeeded"), series.total("succeeded", 2)) == (0, 0)


@pytest.mark.parametrize(("minutes", "step"), [(1440, 20), (2880, 1), (2880, 7), (7 * 1440, 120), (30 * 1440, 720)])
def test_a_long_history_is_read_in_short_calls_with_the_same_answer(redis, keys, readers, minute, minutes, step):
    kept = range(0, 2880, 3)
    pipe = redis.pipeline(transaction=False)
    for back in kept:
        pipe.hset(keys.stats + b"%d" % (minute - back), mapping={"succeeded": back + 1, "failed": back % 2})
    pipe.execute()
    reader = readers.overview.series
    calls = reader._calls(QUEUE, minutes, step, minute * 60_000)

    series = history(redis, readers, minutes, step)

    first = series.last - series.steps + 1
    expected = [0] * series.steps
    for back in kept:
        if (place := (minute - back) // step - first) >= 0:
            expected[place] += back + 1
    assert series.of("succeeded") == expected
    assert len(calls) >= min(minutes, 2880) // 240


@pytest.mark.parametrize("hours", [1, 30, 49, 200])
def test_hours_that_are_rolled_up_are_read_in_short_calls_too(redis, broker, readers, minute, hours):
    keys, present = broker.keys.of(QUEUE), minute // 60
    redis.hset(keys.clock, "rolled_up", present - hours + 1)
    pipe = redis.pipeline(transaction=False)
    for back in range(720):  # of hours that are not rolled up, nobody looks at it
        pipe.hset(keys.hours + b"%d" % (present - back), "succeeded", 1000)
    for back in range(2880):
        pipe.hset(keys.stats + b"%d" % (minute - back), "succeeded", 1)
    pipe.execute()

    series = history(redis, readers, 10 * 1440, 60)

    rolled_up = [1000] * (240 - hours)
    assert series.of("succeeded")[: len(rolled_up)] == rolled_up
    single = series.of("succeeded")[len(rolled_up) :]
    assert sum(single) == sum(1 for back in range(2880) if (minute - back) // 60 > present - hours)


def test_a_minute_that_begins_between_two_calls_is_counted_once():
    first = [60_000_000, 3, [998, b"a", 1], [999, b"a", 2]]
    second = [60_060_000, 3, [1000, b"a", 4], [1001, b"b", 8]]

    assert _series([first, second], 1).counts == {"a": [2, 4, 0], "b": [0, 0, 8]}
