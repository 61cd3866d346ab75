"""A process keeps what is over, and asks for the last steps only. What is shown is the same."""

from dataclasses import replace
from datetime import timedelta

import pytest

from django_rtq.console.reading.metrics.time_series import TimeSeriesReader
from django_rtq.console.reading.readers import Readers
from tests.console.lua.test_time_series import set_counters
from tests.support.jobs import QUEUE, queued_job

MINUTES = 60


@pytest.fixture
def asked(broker, monkeypatch):
    """For how many minutes each question is."""
    found, call = [], TimeSeriesReader._call

    def noted(self, queue, minutes, *others):
        found.append(minutes)
        return call(self, queue, minutes, *others)

    monkeypatch.setattr(TimeSeriesReader, "_call", noted)
    return found


def series(readers):
    """That of the only queue, as the overview gets it."""
    (row,) = readers.overview.read().queues
    return row.series


def test_the_second_question_is_short_and_its_answer_the_same(redis, broker, readers, minute, asked):
    queued_job(broker)
    for ago in range(MINUTES + 5):
        set_counters(redis, broker, minute - ago, succeeded=ago, run_ms=7)
    first = series(readers)
    set_counters(redis, broker, minute, succeeded=100, failed=3)

    second = series(readers)

    assert asked == [MINUTES, 2]
    assert second == series(Readers(broker))
    assert second != first


def test_hours_later_nothing_is_missing(redis, broker, readers, minute, asked):
    queued_job(broker)
    for ago in range(3 * MINUTES):
        set_counters(redis, broker, minute - ago, succeeded=ago)
    expected = series(readers)
    first = []
    for past in (1, 7, MINUTES - 1, MINUTES, 5 * MINUTES):
        readers.overview.series._hours[QUEUE] = replace(
            expected,
            begins_at=expected.begins_at - timedelta(minutes=past),
            counts={"enqueued": expected.of("enqueued"), "succeeded": list(range(MINUTES - 1 + past, past - 1, -1))},
        )
        asked.clear()
        assert series(readers).of("succeeded") == expected.of("succeeded")
        first.append(asked[0])
    assert first == [3, 9, MINUTES, MINUTES, MINUTES]


def test_a_clock_that_was_put_back_is_believed(redis, broker, readers, minute):
    queued_job(broker)
    set_counters(redis, broker, minute - 3, succeeded=3)
    expected = series(readers)
    readers.overview.series._hours[QUEUE] = replace(expected, begins_at=expected.begins_at + timedelta(hours=3))

    assert series(readers) == expected


def test_what_another_redis_did_is_not_shown(redis, broker, readers, minute):
    queued_job(broker)
    set_counters(redis, broker, minute - 9, succeeded=3)
    set_counters(redis, broker, minute, succeeded=3)
    assert series(readers).total("succeeded") == 6
    redis.delete(*(broker.keys.of(QUEUE).stats + b"%d" % (minute - ago) for ago in range(-1, 10)))

    assert series(readers).total("succeeded") == 0
