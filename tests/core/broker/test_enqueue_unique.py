"""— -> queued or scheduled, unless one like it lives (G9)."""

from tests.support.jobs import (
    QUEUE,
    claim_all,
    enqueue,
    entered_job,
    held_job,
    settle,
    unique_job,
)
from tests.support.snapshots import snapshot

# -- it works


def test_of_one_call_the_first_is_taken_in(broker):
    jobs = [unique_job(name) for name in "abc"]

    assert enqueue(broker, *jobs) == ["ok", f"duplicate {jobs[0].id}", f"duplicate {jobs[0].id}"]

    assert claim_all(broker) == [jobs[0].id]


# -- how long it is held


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
