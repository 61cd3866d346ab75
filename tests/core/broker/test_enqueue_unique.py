"""— -> queued or scheduled, unless one like it lives (G9)."""

import pytest

from tests.support.jobs import (
    NOTE,
    QUEUE,
    claim,
    claim_all,
    dead_job,
    enqueue,
    entered_job,
    held_job,
    limit_of,
    settle,
    unique_job,
)
from tests.support.snapshots import MS, snapshot
from tests.support.waiting import wait_until

# -- it works


def test_it_holds_its_digest_and_is_a_job_like_others(redis, broker):
    assert enqueue(broker, unique_job("a", client="acme", priority=5)) == ["ok"]

    assert snapshot(redis, times=False) == {
        "rtq:queues": {QUEUE},
        "jobs": {"a": "5 3 <ms> 0 acme\n{}"},
        "unique:d1": "a",
        "digests": {"a": NOTE},
        "lane:5:acme": ["a"],
        "ring:5": {"acme": 1},
        "bands": {"5": 5},
        "lanes": {"5:acme": MS},
        "turn": "1",
        "work_signal": {"work": 0},
        "stats": {"enqueued": 1},
    }


def test_of_one_call_the_first_is_taken_in(broker):
    jobs = [unique_job(name) for name in "abc"]

    assert enqueue(broker, *jobs) == ["ok", f"duplicate {jobs[0].id}", f"duplicate {jobs[0].id}"]

    assert claim_all(broker) == [jobs[0].id]


def test_the_limit_counts_from_when_it_is_ready(redis, broker):
    entered_job(broker, limit_ms=5000)
    assert 0 < limit_of(broker) <= 5000
    entered_job(broker, limit_ms=5000, digest="d2", due="+60000")
    assert 60_000 < limit_of(broker, "d2") <= 65_000


def test_after_the_limit_it_keeps_nobody_out(redis, broker):
    first = entered_job(broker, limit_ms=1)
    wait_until(lambda: limit_of(broker) < 0)

    second = entered_job(broker, "b")

    assert claim(broker) == [first.id]
    settle(broker, "ack", first, worker="w2")
    assert snapshot(redis)["unique:d1"] == second.id  # the first one's end is no business of the second


# -- how long it is held


def test_a_job_that_lost_it_does_not_free_that_of_another(redis, broker):
    job = held_job(broker, "a")
    redis.set(broker.keys.of(QUEUE).unique + b"d1", "another")

    settle(broker, "ack", job)

    assert snapshot(redis)["unique:d1"] == "another"


@pytest.mark.parametrize("seed", [dead_job, None], ids=["dead", "unknown"])
def test_what_a_torn_log_left_keeps_nobody_out(redis, broker, seed):
    owner = seed(broker).id if seed else "nobody"
    redis.set(broker.keys.of(QUEUE).unique + b"d1", owner)

    job = entered_job(broker)

    assert snapshot(redis)["unique:d1"] == job.id


def test_one_of_which_the_note_was_lost_is_held_until_it_is_done(redis, broker):
    job = held_job(broker, "a", until="start")
    redis.delete(broker.keys.of(QUEUE).digests)

    assert enqueue(broker, unique_job("b")) == [f"duplicate {job.id}"]
    settle(broker, "ack", job)
    assert enqueue(broker, unique_job("c")) == ["ok"]


def test_an_heir_without_a_record_inherits_nothing(redis, broker):
    """As a torn log leaves one that was thrown away."""
    first = held_job(broker, "a", successor="b")
    (successor,) = snapshot(redis)["scheduled"]
    redis.hdel(broker.keys.of(QUEUE).jobs, successor)

    assert settle(broker, "ack", first) == []

    assert "unique:d1" not in snapshot(redis)
    assert enqueue(broker, unique_job("c")) == ["ok"]


# -- until it starts


def test_until_it_starts_others_wait_behind_it(redis, broker):
    first = held_job(broker, "a", until="start")

    second = entered_job(broker, "b", until="start")
    assert enqueue(broker, unique_job("c", until="start")) == [f"duplicate {second.id}"]

    settle(broker, "ack", first)
    assert snapshot(redis)["unique:d1"] == second.id
    assert snapshot(redis)["digests"] == {second.id: "start 3600000 d1"}
