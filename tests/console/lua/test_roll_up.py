"""The counters of minutes are added up by the hour, before they expire."""

from django_rtq.console.roll_up import RollUp
from django_rtq.core.scheduler.scheduler import Scheduler
from tests.console.lua.test_time_series import history, set_counters
from tests.support.console_steps import roll_up
from tests.support.jobs import QUEUE

MONTH = 30 * 24 * 60


def roll_up_all(broker):
    while roll_up(broker):
        pass


def sums_of(redis, keys, hour):
    return {name.decode(): int(number) for name, number in redis.hgetall(keys.hours + b"%d" % hour).items()}


def test_the_minutes_of_past_hours_are_added_up(redis, broker, keys, hour):
    set_counters(redis, broker, (hour - 1) * 60, succeeded=3, failed=1)
    set_counters(redis, broker, (hour - 1) * 60 + 59, succeeded=4)
    set_counters(redis, broker, (hour - 2) * 60 + 59, succeeded=50)
    set_counters(redis, broker, hour * 60, succeeded=700)

    roll_up_all(broker)

    assert sums_of(redis, keys, hour - 1) == {"succeeded": 7, "failed": 1}
    assert sums_of(redis, keys, hour - 2) == {"succeeded": 50}
    assert 30 * 86_400 < redis.ttl(keys.hours + b"%d" % (hour - 1)) <= 31 * 86_400


def test_a_scheduler_adds_up(redis, broker, keys):
    scheduler = Scheduler(broker, [QUEUE])
    scheduler.tick()
    scheduler.stop()

    assert redis.hexists(keys.clock, "rolled_up")


def test_two_schedulers_add_up_once(redis, broker, keys, hour):
    set_counters(redis, broker, (hour - 1) * 60, succeeded=3)
    for _ in range(2):
        add_up = RollUp(broker, [QUEUE])
        for _ in range(6):
            add_up()

    assert sums_of(redis, keys, hour - 1) == {"succeeded": 3}


def test_a_scheduler_adds_up_once_an_hour(redis, broker, monkeypatch):
    calls, command = [], RollUp.command
    monkeypatch.setattr(RollUp, "command", lambda self, queue: calls.append(queue) or command(self, queue))
    add_up = RollUp(broker, [QUEUE])
    for _ in range(20):
        add_up()

    assert len(calls) in (4, 5)  # 47 hours, or 48 if one ended meanwhile
    assert int(redis.hget(broker.keys.of(QUEUE).clock, "rolled_up")) <= redis.time()[0] // 3600


def test_after_three_days_without_schedulers_whole_hours_are_added_up(redis, broker, keys, hour):
    redis.hset(keys.clock, "rolled_up", hour - 72)
    set_counters(redis, broker, (hour - 48) * 60 + 59, succeeded=100)  # the other minutes of that hour have expired
    set_counters(redis, broker, (hour - 46) * 60, succeeded=3)

    roll_up_all(broker)

    assert sums_of(redis, keys, hour - 48) == {}
    assert sums_of(redis, keys, hour - 46) == {"succeeded": 3}


def test_after_the_clock_was_put_back_hours_are_added_up_again(redis, broker, keys, hour):
    set_counters(redis, broker, (hour - 1) * 60, succeeded=3)
    redis.hset(keys.clock, "rolled_up", hour + 5)
    assert roll_up(broker) == 0
    assert int(redis.hget(keys.clock, "rolled_up")) in (hour, hour + 1)


def test_a_month_is_read_from_hours_and_the_present_one_from_minutes(redis, broker, keys, readers, hour):
    redis.hset(keys.hours + b"%d" % (hour - 700), mapping={"succeeded": 10})
    redis.hset(keys.hours + b"%d" % (hour - 100), mapping={"succeeded": 20})
    redis.hset(keys.clock, "rolled_up", hour)
    set_counters(redis, broker, hour * 60, succeeded=5)
    set_counters(redis, broker, (hour - 3) * 60, succeeded=1000)  # it is in the sums of its hour, and counts nothing

    series = history(redis, readers, MONTH, 60)

    assert (series.steps, series.step_seconds, series.total("succeeded")) == (720, 3600, 35)
    assert series.of("succeeded")[-101] == 20


def test_hours_that_are_not_added_up_yet_are_read_from_minutes(redis, broker, keys, readers, hour):
    redis.hset(keys.clock, "rolled_up", hour - 2)
    redis.hset(keys.hours + b"%d" % (hour - 3), mapping={"succeeded": 10})
    set_counters(redis, broker, (hour - 2) * 60 + 1, succeeded=5)

    assert history(redis, readers, MONTH, 60).total("succeeded") == 15
