"""What becomes of a job when one like it lives: it runs after that one, or that one takes what it brings (G9)."""

from tests.support.jobs import (
    QUEUE,
    claim_all,
    enqueue,
    entered_job,
    held_job,
    limit_of,
    settle,
    unique_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import live_jobs, place_of, snapshot


def arguments_of(redis, job):
    return live_jobs(redis)[job.id].partition("\n")[2]


# -- rerun


def test_changes_while_it_runs_make_one_more_run_with_the_last_arguments(redis, broker):
    first = held_job(broker, "a")
    changes_ = [unique_job(name, on_conflict="rerun", body=f'["{name}"]') for name in "bcde"]

    answers = enqueue(broker, *changes_)

    successor = changes_[0]
    assert answers == [f"after {first.id}"] + [f"duplicate {first.id}"] * 3
    assert place_of(redis, successor) == "scheduled"
    settle(broker, "ack", first)
    promote(broker, QUEUE)
    assert claim_all(broker) == [successor.id]
    assert arguments_of(redis, successor) == '["e"]'
    assert snapshot(redis)["unique:d1"] == successor.id


def test_an_heir_without_a_record_inherits_nothing(redis, broker):
    """As a torn log leaves one that was thrown away."""
    first = held_job(broker, "a", successor="b")
    (successor,) = snapshot(redis)["scheduled"]
    redis.hdel(broker.keys.of(QUEUE).jobs, successor)

    assert settle(broker, "ack", first) == []

    assert "unique:d1" not in snapshot(redis)
    assert enqueue(broker, unique_job("c")) == ["ok"]


# -- replace


def test_the_one_that_waits_takes_arguments_and_time_of_the_other(redis, broker):
    first = entered_job(broker, due="+60000", limit_ms=10_000)
    was_due = snapshot(redis)["scheduled"][first.id]

    other = unique_job("b", on_conflict="replace", due="+90000", body='["new"]', client="x", limit_ms=10_000)
    assert enqueue(broker, other) == [f"duplicate {first.id}"]

    assert arguments_of(redis, first) == '["new"]'
    assert snapshot(redis)["scheduled"][first.id] >= was_due + 30_000
    assert 90_000 < limit_of(broker) <= 100_000
    assert snapshot(redis)["stats"] == {"enqueued": 1}


# -- sent twice, lost on the way
