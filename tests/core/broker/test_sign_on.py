"""A worker begins to take part."""

from tests.support.jobs import QUEUE, WORKER
from tests.support.redis_server import LEASE_SECONDS
from tests.support.snapshots import MS, changes, snapshot
from tests.support.waiting import server_ms


def test_a_worker_is_written_down_with_its_deadline(redis, broker):
    before, began = snapshot(redis, times=False), server_ms(redis)

    broker.sign_on([QUEUE], WORKER)

    assert changes(before, snapshot(redis, times=False)) == {
        "workers": {WORKER: MS},
        "signed_on": {WORKER: MS},
        "clock": {"contact": MS, "high": MS, "anchor": f"{MS} {MS}"},
    }
    assert began <= snapshot(redis)["workers"][WORKER] - LEASE_SECONDS * 1000 <= server_ms(redis)
