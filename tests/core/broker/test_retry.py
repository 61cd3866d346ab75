"""running -> retrying."""

from django_rtq.core.broker.settlement import UNKNOWN_CLIENT, Settlement
from tests.support.jobs import (
    ERROR,
    QUEUE,
    WORKER,
    claimed_job,
    settle,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_it_waits_for_its_next_attempt(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "retry", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "scheduled": {"a": MS},
        "scheduled_by_client": {"": MS},
        "scheduled_by_client:": {"a": MS},
        "retrying": {"a": MS},
        "due_signal": {"due": 0},
        "failures": {"a": "1"},
        "errors": {"a": ERROR + "\n"},
        "stats": {"enqueued": 1, "failed": 1},
    }


def test_a_worker_that_could_not_run_it_spends_no_attempt(redis, broker):
    job = claimed_job(broker, "a")

    settle(broker, "retry", job, counted=0)

    after = snapshot(redis, times=False)
    assert after["scheduled"] == {"a": MS}
    assert "failures" not in after
    assert after["stats"] == {"enqueued": 1}


def test_who_does_not_know_the_client_need_not_tell_it(redis, broker):
    job = claimed_job(broker, "a", client="acme")

    assert broker.settle(WORKER, QUEUE, Settlement(retry=[job.id, 60_000, 1, ERROR, UNKNOWN_CLIENT])) == []

    after = snapshot(redis, times=False)
    assert after["scheduled_by_client"] == {"acme": MS}
    assert after["scheduled_by_client:acme"] == {"a": MS}
