"""How many jobs clients have in their lanes, and how many wait for their time."""

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, queued_job, retrying_job, scheduled_job
from tests.support.snapshots import snapshot


def test_lanes_and_indexes_are_counted_in_the_order_of_the_names(redis, broker):
    retrying_job(broker, client="x")
    scheduled_job(broker, client="x")
    for client in ("", "x", "x", "a:b"):
        queued_job(broker, client=client)
    queued_job(broker, client="x", priority=5)
    before = snapshot(redis)

    names = ["0:x", "5:x", "0:", "0:a:b", "0:nobody", ":x", ":nobody", ":"]
    counts = [broker.redis.execute_one(SCRIPTS["count_lanes"].call(broker.keys.of(QUEUE), names)) for _ in range(2)]

    assert counts == [[2, 1, 1, 1, 0, 2, 0, 0]] * 2
    assert snapshot(redis) == before
