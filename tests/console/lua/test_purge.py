"""queued, scheduled, retrying -> gone."""

from tests.support.jobs import (
    QUEUE,
    claim_all,
    queued_job,
)
from tests.support.snapshots import live_jobs, snapshot


def test_a_lane_that_is_only_indexed_ends(redis, broker, readers):
    redis.zadd(broker.keys.of(QUEUE).lanes, {"0:gone": 1})
    queued_job(broker)

    assert [readers.sweeps.purge_some(QUEUE, None) for _ in range(2)] == [1, 0]

    assert "lanes" not in snapshot(redis)


def test_a_blocked_client_is_purged(redis, broker, readers, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=0)
    queued_job(broker, client="x", priority=5)
    claim_all(broker)

    assert [readers.sweeps.purge_some(QUEUE, "x"), readers.sweeps.purge_some(QUEUE, "x")] == [1, 0]
    assert not live_jobs(redis)


def test_the_client_without_a_name_is_purged_alone(broker, readers):
    queued_job(broker)
    queued_job(broker, client="x")

    assert [readers.sweeps.purge_some(QUEUE, ""), readers.sweeps.purge_some(QUEUE, "")] == [1, 0]
    assert readers.sweeps.purge_some(QUEUE, "x") == 1
