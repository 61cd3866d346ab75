"""running -> expired."""

from tests.support.jobs import claimed_job, settle
from tests.support.snapshots import GONE, changes, snapshot


def test_it_is_over_without_a_run(redis, broker):
    job = claimed_job(broker, "a", expires="+1")
    before = snapshot(redis, times=False)

    assert settle(broker, "expire", job, outcome='{"state": "expired"}') == []

    assert changes(before, snapshot(redis, times=False)) == {
        "jobs": GONE,
        "running:w1": GONE,
        "results": {"a": '<ms> 3600000 {"state": "expired"}'},
        "finished": {"a"},
        "recent_results": ["a"],
        "stats": {"enqueued": 1, "expired": 1},
    }
