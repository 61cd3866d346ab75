"""Who kept the workers busy while others wait."""

import pytest

from tests.broker.test_client_metrics import serve
from tests.support.jobs import QUEUE, queued_job
from tests.support.snapshots import snapshot


def busiest(inspector):
    (row,) = inspector.overview.read().queues
    return row.busiest


def test_while_several_clients_wait_it_is_the_one_with_most_run_time(redis, broker, inspector):
    for client in "xy":
        queued_job(broker, client=client)
    serve(broker, ("x", 50, 1.0), ("z", 2, 3.0))
    before = snapshot(redis)

    assert busiest(inspector) == ("z", 0.75)
    assert snapshot(redis) == before


@pytest.mark.parametrize("clients", ["", "x", "xx"])
def test_where_only_one_client_waits_it_is_nobody(broker, inspector, clients):
    for client in clients:
        queued_job(broker, client=client)
    serve(broker, ("x", 50, 1.0))
    broker.redis.execute_one(("SADD", broker.keys.queues, QUEUE))

    assert busiest(inspector) is None


def test_where_nothing_ran_it_is_nobody(broker, inspector):
    for client in "xy":
        queued_job(broker, client=client)

    assert busiest(inspector) is None


def test_the_whole_hour_counts_and_no_more(redis, broker, inspector):
    for client in "xy":
        queued_job(broker, client=client)
    keys, slice_ = broker.keys.of(QUEUE), redis.time()[0] // 600
    for back, times in ((0, {"x": 4, "y": 3}), (3, {"y": 3}), (6, {"z": 90})):
        redis.zadd(keys.client_time + str(slice_ - back).encode(), times)
        redis.hset(keys.client_runs + str(slice_ - back).encode(), "\n", sum(times.values()))

    assert busiest(inspector) == ("y", 0.6)


def test_a_client_without_a_name_is_one(broker, inspector):
    for client in ("", "y"):
        queued_job(broker, client=client)
    serve(broker, ("", 1, 1.0))

    assert busiest(inspector) == ("", 1.0)
