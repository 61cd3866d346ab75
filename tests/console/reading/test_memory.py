"""What takes the memory of Redis is estimated from some keys of each kind."""

import pytest

from django_rtq.console.reading import memory
from tests.support.jobs import QUEUE, queued_job, scheduled_job
from tests.support.workflows import begun_flow

BIG = '{"task":"t","args":["' + 3000 * "x" + '"]}'


@pytest.fixture
def read(readers):
    return lambda: {queue.name: queue.sizes for queue in readers.memory.read()}


def test_the_largest_queue_comes_first_with_what_it_holds(broker, readers, read):
    queued_job(broker, queue="low")
    for number in range(100):
        queued_job(broker, body=BIG, client=f"client-{number}")

    first, second = readers.memory.read()

    assert (first.name, second.name) == (QUEUE, "low")
    assert 300_000 < first.sizes["jobs"] < 500_000
    assert first.total > first.sizes["jobs"] + first.sizes["order"]
    assert first.sizes["order"] > 100 * 50  # a lane for each client, of which ten are measured
    assert second.sizes["jobs"] < 1000


def test_keys_that_there_are_many_of_stand_for_the_others(redis, broker, keys, read):
    scheduled_job(broker)
    before = read()[QUEUE]
    for number in range(50):
        redis.rpush(keys.logged, number)
        redis.rpush(keys.log_of(str(number)), 1000 * "x")
        redis.hset(keys.step_jobs, number, "")
        redis.hset(keys.steps + b"%d" % number, "step a", 1000 * "x")
    begun_flow(broker, {"size": 1})

    after = read()[QUEUE]

    assert 50_000 < after["logs"] - before["logs"] < 100_000
    assert 50_000 < after["steps"] - before["steps"] < 100_000
    assert after["workflows"] > before["workflows"]


def test_of_very_many_queues_those_with_most_jobs_are_read(broker, monkeypatch, read):
    monkeypatch.setattr(memory, "MOST_QUEUES", 2)
    for number, queue in enumerate(("a", "b", "c"), 1):
        for _ in range(number):
            queued_job(broker, queue=queue)

    assert sorted(read()) == ["b", "c"]


def test_nothing_is_used(read):
    assert read() == {}
