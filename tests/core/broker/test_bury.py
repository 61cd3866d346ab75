"""running -> dead."""

from tests.support.jobs import ERROR, claimed_job, settle
from tests.support.server_clock import server_ms
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_it_becomes_a_dead_letter(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "bury", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "dead": {"a": MS},
        "failures": {"a": "1"},
        "errors": {"a": ERROR + "\n"},
        "stats": {"enqueued": 1, "failed": 1, "dead": 1},
    }


def test_a_job_that_never_ran_dies_without_a_failure(redis, broker):
    job = claimed_job(broker, "a")

    settle(broker, "bury", job, counted=0)

    after = snapshot(redis, times=False)
    assert after["dead"] == {"a": MS}
    assert after["errors"] == {"a": ERROR + "\n"}
    assert "failures" not in after
    assert after["stats"] == {"enqueued": 1, "dead": 1}


def test_it_died_by_the_servers_clock(redis, broker):
    job, began = claimed_job(broker), server_ms(redis)

    settle(broker, "bury", job)

    assert began <= snapshot(redis)["dead"][job.id] <= server_ms(redis)
