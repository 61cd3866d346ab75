"""Totals: sums of counters that never go back, made of the counters of minutes and hours."""

import pytest

from django_rtq.console.reading.metrics.reader import TaskMetrics, Totals
from django_rtq.core.broker.settlement import Settlement
from tests.support.console_steps import update_totals
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import snapshot


@pytest.fixture
def now(redis):
    """The present minute, by the clock of the server. A test may end in the next one."""
    seconds = redis.time()[0]
    return seconds // 60


def added_up(broker):
    """What is reported: each total with the counters of the present minute and hour."""
    totals = update_totals(broker)
    done = {f"done {task}": metrics.done for task, metrics in totals.tasks.items()}
    return {name: number for name, number in totals.counters.items() if name not in ("minute", "hour")} | done


def test_nothing_is_written_until_somebody_asks(redis, broker, keys):
    queued_job(broker)
    broker.settle("w1", QUEUE, Settlement(metrics=[(13, 7, 1, "done ship", 3)]))
    assert not redis.exists(keys.totals)

    update_totals(broker)

    assert redis.ttl(keys.totals) == -1


def test_from_then_on_all_is_counted(broker):
    update_totals(broker)
    queued_job(broker)
    broker.settle("w1", QUEUE, Settlement(metrics=[(13, 7, 1, "done ship", 3)]))

    assert added_up(broker) == {"enqueued": 1, "run_ms": 13, "wait_ms": 7, "done ship": 3}


def test_past_minutes_and_hours_are_added_once(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={"minute": now - 3, "hour": now // 60 - 1, "enqueued": 100})
    for back, number in ((4, 5000), (3, 1), (1, 20)):  # the first is in the total
        redis.hset(keys.stats + b"%d" % (now - back), "enqueued", number)
    redis.hset(keys.tasks + str(now // 60 - 1).encode(), "done ship", 7)
    redis.hset(keys.tasks + str(now // 60 - 2).encode(), "done ship", 5000)

    first = added_up(broker)
    taken = snapshot(redis)

    assert first == {"enqueued": 121, "done ship": 7}
    assert added_up(broker) == first
    assert snapshot(redis) == taken
    queued_job(broker)
    assert added_up(broker) == {"enqueued": 122, "done ship": 7}


def test_after_a_long_time_they_are_added_in_steps_and_no_sum_goes_back(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={"minute": now - 2000, "hour": now // 60 - 33})
    for back in range(2001):
        redis.hset(keys.stats + b"%d" % (now - back), "enqueued", 1)
    for back in range(34):
        redis.hset(keys.tasks + str(now // 60 - back).encode(), "done ship", 1)

    told = [added_up(broker) for _ in range(20)]

    assert told[0] == {"enqueued": 300, "done ship": 2}
    assert told == sorted(told, key=lambda sums: (sums["enqueued"], sums["done ship"]))
    assert told[-1]["enqueued"] >= 2001
    assert told[-1]["done ship"] >= 34


def test_minutes_that_have_expired_are_passed_over(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={"minute": now - 1_000_000, "hour": 5, "enqueued": 9})

    for _ in range(30):
        told = added_up(broker)

    assert told == {"enqueued": 9}
    assert int(redis.hget(keys.totals, "minute")) >= now
    assert int(redis.hget(keys.totals, "hour")) >= now // 60


def test_after_the_clock_was_put_back_they_go_on_from_the_present(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={"minute": now + 600, "hour": now // 60 + 10, "enqueued": 9})
    for minute in (now, now + 1):  # one of them is the present one
        redis.hset(keys.stats + b"%d" % minute, "enqueued", 1)

    assert added_up(broker) == {"enqueued": 10}
    assert int(redis.hget(keys.totals, "minute")) <= now + 1


def test_many_names_are_added_hour_by_hour_and_no_sum_goes_back(redis, broker, keys, now):
    hour = now // 60
    redis.hset(keys.totals, mapping={"minute": now, "hour": hour - 2})
    for back in range(3):
        redis.hset(keys.tasks + str(hour - back).encode(), mapping={f"done {name}": name for name in range(3500)})

    told = [added_up(broker) for _ in range(3)]

    assert int(redis.hget(keys.totals, "hour")) >= hour
    for sums, times in zip(told, (1, 3, 3), strict=True):  # the first call adds one hour
        assert sums == {f"done {name}": times * name for name in range(3500)}


def test_of_very_many_names_so_many_are_added_as_there_is_room_for(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={f"filler-{number}": 1 for number in range(9000)})
    redis.hset(keys.totals, mapping={"minute": now, "hour": now // 60 - 1})
    past = {f"new-{number}": 1 for number in range(3000)} | {f"filler-{number}": 1 for number in range(6000)}
    redis.hset(keys.tasks + str(now // 60 - 1).encode(), mapping=past)

    told = added_up(broker)

    assert redis.hlen(keys.totals) == 10_000
    assert sum(name.startswith("new-") for name in told) == 998
    assert {told[f"filler-{number}"] for number in range(6000)} == {2}


def test_the_tasks_of_this_hour_come_after_those_of_earlier_hours(redis, broker, keys, now):
    redis.hset(keys.totals, mapping={"minute": now, "hour": now // 60 - 33})
    for back in range(3):
        redis.hset(keys.tasks + str(now // 60 - back).encode(), "done ship", 10**back)

    assert added_up(broker) == {}
    assert redis.hgetall(keys.tasks + str(now // 60).encode()) == {b"done ship": b"1"}


@pytest.mark.parametrize(
    ("minute", "hour", "expected"),
    [
        (600, 10, (9, 1)),
        (601, 10, (7, 1)),  # another process has added this minute meanwhile
        (599, 10, (7, 1)),  # some are left to add
        (600, 9, (9, 0)),
        (600, 11, (9, 5)),  # the clock was put back
        (720, 12, (7, 0)),
    ],
)
def test_present_counters_are_told_unless_they_are_in_the_totals(minute, hour, expected):
    totals = [b"enqueued", b"7", b"minute", b"%d" % minute, b"hour", b"%d" % hour]

    told = Totals.read(10, [[600, [b"enqueued", b"2"]], [b"done ship", b"1"], [b"done ship", b"5"], totals])

    assert (told.counters["enqueued"], told.tasks.get("ship", TaskMetrics()).done) == expected


def test_nothing_is_told_of_a_queue_that_is_forgotten_meanwhile():
    assert Totals.read(10, [[600, [b"enqueued", b"1"]], [], [], []]) == Totals(counters={}, tasks={})


def test_a_forgotten_queue_has_none(redis, broker):
    update_totals(broker)
    assert broker.forget(QUEUE) == "missing"
    assert not redis.keys("*totals")
