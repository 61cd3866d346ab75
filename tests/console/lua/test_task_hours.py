"""The hours that are over are read once, and only once."""

import pytest

from django_rtq.console.reading.metrics import reader
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.exceptions import BrokerUnavailable
from tests.console.lua.test_task_metrics import tell
from tests.support.jobs import QUEUE, claimed_job

LOW = "low"
READS = {
    "list": lambda readers: readers.tasks.all()["ship"].done,
    "page": lambda readers: readers.tasks.get("ship").total.done,
}


@pytest.fixture(params=READS.values(), ids=READS)
def done(request, readers):
    """Reads how many runs of a task succeeded."""
    return lambda: request.param(readers)


@pytest.fixture
def hour(redis, broker):
    """The present hour; a task has run in it, and in the two before it, in two queues."""
    present = redis.time()[0] // 3600
    broker.register_queues([QUEUE, LOW])
    for queue, number in ((QUEUE, 1), (LOW, 2)):
        for back in range(3):
            count(redis, broker, present - back, number * 10**back, queue)
    return present


@pytest.fixture
def trips(monkeypatch):
    """Collects the numbers of bytes or entries of each round trip."""
    sizes, exchange = [], RedisClient._exchange

    def counted(self, commands, **options):
        replies = exchange(self, commands, **options)
        sizes.append(len(repr(replies)))
        return replies

    monkeypatch.setattr(RedisClient, "_exchange", counted)
    return sizes


def count(redis, broker, hour, number, queue=QUEUE):
    redis.hset(broker.keys.of(queue).tasks + str(hour).encode(), "done ship", number)


def begin(redis, broker, hour, *queues):
    """Let this hour begin in queues: their time never is behind the latest that was seen."""
    for queue in queues:
        redis.hset(broker.keys.of(queue).clock, mapping={"high": hour * 3_600_000, "anchor": ""})


def test_hours_that_are_over_are_not_read_again(redis, broker, done, hour):
    assert done() == 333

    count(redis, broker, hour - 1, 5000)  # never happens: it shows that it is not read
    assert done() == 333


def test_the_present_hour_is_read_each_time(redis, broker, done, hour):
    assert done() == 333

    tell(broker, "done ship", 7)
    assert done() == 340
    assert done() == 340


def test_less_is_read_the_second_time(redis, broker, done, hour, trips):
    for back in range(1, 12):
        for queue in (QUEUE, LOW):
            numbers = {f"r{bucket} ship": 3 for bucket in range(40)}
            redis.hset(broker.keys.of(queue).tasks + str(hour - back).encode(), mapping=numbers | {"done ship": 1})
    done()
    first = sum(trips)
    trips.clear()
    done()

    assert len(trips) <= 4
    assert sum(trips) < first


@pytest.mark.parametrize("queues", [[QUEUE], [LOW], [QUEUE, LOW]])
def test_with_the_next_hour_all_is_read_again(redis, broker, done, hour, queues):
    assert done() == 333

    begin(redis, broker, hour + 1, *queues)
    assert [done(), done()] == [333, 333]

    count(redis, broker, hour + 1, 4000, queues[0])
    assert done() == 4333


def test_counters_that_vanish_are_not_shown_any_more(redis, broker, done, hour):
    assert done() == 333

    redis.delete(*(broker.keys.of(LOW).tasks + str(hour - back).encode() for back in range(3)))
    assert done() == 111


def test_an_hour_that_turns_up_is_shown(redis, broker, done, hour):
    assert done() == 333

    count(redis, broker, hour - 5, 1000)
    assert done() == 1333


def test_a_new_queue_is_read(redis, broker, done, hour):
    assert done() == 333

    tell(broker, "done ship", 7, queue="high")
    assert done() == 340


def test_other_tasks_are_shown_too(redis, broker, readers, hour):
    tell(broker, "done mail", 5)
    redis.hset(broker.keys.of(QUEUE).tasks + str(hour - 1).encode(), "done mail", 3)

    found = [readers.tasks.all() for _ in range(2)]

    assert found[0] == found[1]
    assert found[0]["mail"].done == 8
    assert readers.tasks.get("mail").total.done == 8
    assert readers.tasks.get("ship").total.done == 333


def test_very_many_counters_are_read_in_many_round_trips(readers, hour, trips, monkeypatch):
    monkeypatch.setattr(reader, "AT_ONCE", 1)

    assert readers.tasks.all()["ship"].done == 333
    assert len(trips) == 2 + 6  # three hours of two queues


def test_a_read_goes_on_where_the_last_one_failed(readers, hour, trips, monkeypatch):
    monkeypatch.setattr(reader, "AT_ONCE", 1)
    exchange = RedisClient._exchange

    def fails_late(self, commands, **options):
        if len(trips) == 5:
            raise BrokerUnavailable("away")
        return exchange(self, commands, **options)

    monkeypatch.setattr(RedisClient, "_exchange", fails_late)
    with pytest.raises(BrokerUnavailable):
        readers.tasks.all()
    monkeypatch.setattr(RedisClient, "_exchange", exchange)
    trips.clear()

    assert readers.tasks.all()["ship"].done == 333
    assert len(trips) == 2 + 3  # of four hours that are over, three were known


def test_how_long_tasks_usually_run_is_read_once_a_minute(redis, broker, readers, hour, trips, monkeypatch):
    claimed_job(broker)
    readers.workers(with_usual=True)
    trips.clear()

    readers.workers(with_usual=True)

    assert len(trips) == 2
