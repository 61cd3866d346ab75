"""Who kept the workers busy while others wait."""

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import snapshot


def serve(broker, *clients):
    """(client, runs, seconds) each."""
    flat = [value for name, runs, seconds in clients for value in (name, runs, round(seconds * 1e6))]
    broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, 0, *flat)]))


def busiest(readers):
    (row,) = readers.overview.read().queues
    return row.busiest and row.busiest[:2]


def test_while_several_clients_wait_it_is_the_one_with_most_run_time(redis, broker, readers):
    for client in "xy":
        queued_job(broker, client=client)
    serve(broker, ("x", 50, 1.0), ("z", 2, 3.0))
    before = snapshot(redis)

    assert busiest(readers) == ("z", 0.75)
    assert snapshot(redis) == before


@pytest.mark.parametrize("clients", ["", "x", "xx"])
def test_where_only_one_client_waits_it_is_nobody(broker, readers, clients):
    for client in clients:
        queued_job(broker, client=client)
    serve(broker, ("x", 50, 1.0))
    broker.redis.execute_one(("SADD", broker.keys.queues, QUEUE))

    assert busiest(readers) is None


def test_the_whole_hour_counts_and_no_more(redis, broker, readers):
    for client in "xy":
        queued_job(broker, client=client)
    keys, slice_ = broker.keys.of(QUEUE), redis.time()[0] // 600
    for back, times in ((0, {"x": 4, "y": 3}), (3, {"y": 3}), (6, {"z": 90})):
        redis.zadd(keys.client_time + str(slice_ - back).encode(), times)
        redis.hset(keys.client_runs + str(slice_ - back).encode(), "\n", sum(times.values()))

    assert busiest(readers) == ("y", 0.6)


def test_a_client_without_a_name_is_one(broker, readers):
    for client in ("", "y"):
        queued_job(broker, client=client)
    serve(broker, ("", 1, 1.0))

    assert busiest(readers) == ("", 1.0)


def test_it_is_told_for_how_long_jobs_of_others_wait_that_might_start(redis, broker, readers, rtq):
    keys, now_ms = broker.keys.of(QUEUE), redis.time()[0] * 1000
    for client in ("busy", "paused", "other"):
        queued_job(broker, client=client)
    redis.zadd(keys.lanes, {"0:busy": now_ms - 900_000, "0:paused": now_ms - 800_000, "0:other": now_ms - 70_000})
    serve(broker, ("busy", 50, 9.0))
    rtq.clients["paused"].pause(QUEUE)

    (row,) = readers.overview.read().queues
    assert row.busiest.others_wait_seconds == pytest.approx(70, abs=5)

    rtq.clients["other"].pause(QUEUE)
    assert busiest(readers) is None
