"""running -> queued."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    claim_all,
    claimed_job,
    claimed_jobs,
    names,
    new_job,
    queued_job,
    settle,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def test_it_is_queued_again_and_nothing_is_counted(redis, broker):
    job = claimed_job(broker, "a", client="x", priority=5)
    before = snapshot(redis, times=False)

    assert settle(broker, "release", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "lane:5:x": ["a"],
        "lanes": {"5:x": MS},
        "ring:5": {"x": 2},
        "bands": {"5": 5},
        "turn": "2",
        "work_signal": {"work": 0},
    }


def test_jobs_come_back_to_the_front_in_the_order_of_their_claim(redis, broker):
    jobs = claimed_jobs(broker, *(new_job(name) for name in "abc"))
    queued_job(broker, "d")

    settle(broker, "release", *jobs)

    assert names(claim_all(broker)) == ["a", "b", "c", "d"]


def test_its_client_has_not_had_its_turn_and_is_next(redis, broker):
    job = claimed_job(broker, "x1", client="x")
    for name in ("y1", "x2"):
        queued_job(broker, name, client=name[0])

    settle(broker, "release", job)

    assert names(claim_all(broker, 1)) == ["x1", "y1", "x2"]


def test_each_band_has_its_own_turns(redis, broker):
    jobs = claimed_jobs(broker, *(new_job(f"{band}", client="x", priority=band) for band in (5, 0)))
    for name, priority in (("y5", 5), ("y0", 0)):
        queued_job(broker, name, client="y", priority=priority)

    settle(broker, "release", *jobs)

    assert names(claim_all(broker, 1)) == ["5", "y5", "0", "y0"]


def test_given_back_again_and_again_it_is_still_next(redis, broker):
    for name in "xyz":
        queued_job(broker, name, client=name)
    for _ in range(5):
        (x,) = claim(broker, worker=WORKER)
        (y,) = claim(broker, worker=WORKER)
        settle(broker, "release", *map(_Named, (x, y)))
        assert names([x, y]) == ["x", "y"]

    assert names(claim_all(broker, 1)) == ["x", "y", "z"]


class _Named:
    def __init__(self, job_id):
        self.id = job_id


@settings(max_examples=40)
@given(
    lines=st.dictionaries(st.sampled_from("vwxyz"), st.integers(1, 6), min_size=1),
    cuts=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=8),
)
def test_batches_that_are_cut_change_no_turn(redis, broker, lines, cuts):
    """What was given back unrun comes as if it had never been claimed."""
    redis.flushdb()
    for client, length in lines.items():
        broker.enqueue(QUEUE, [new_job(client, client=client) for _ in range(length)])
    copy = {key: redis.dump(key) for key in redis.scan_iter()}
    in_turn = claim_all(broker, 1)
    redis.flushdb()
    for key, value in copy.items():
        redis.restore(key, 0, value)

    started = []
    for wanted, done in [*cuts, (100, 100)]:
        batch = claim(broker, wanted, worker=WORKER)
        started += batch[:done]
        settle(broker, "release", *map(_Named, batch[done:]))

    assert started == in_turn


def test_the_next_run_has_the_same_number(redis, broker):
    job = claimed_job(broker, "a")
    settle(broker, "release", job)

    claim(broker)

    assert snapshot(redis, times=False)["running:w2"] == {"a": "1 <ms>"}


def test_a_job_that_is_still_in_its_lane_is_not_there_twice(redis, broker):
    job = claimed_job(broker)
    redis.rpush(broker.keys.of(QUEUE).lane + b"0:", job.id)  # what a torn log leaves of a claim

    settle(broker, "release", job)

    assert snapshot(redis)["lane:0:"] == [job.id]


@pytest.mark.parametrize("record", ["", "{}", "1 2\n{}", "no header at all"])
def test_a_record_without_a_header_is_queued_as_nobodys(redis, broker, record):
    job = claimed_job(broker, "a")
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    settle(broker, "release", job)

    assert snapshot(redis, times=False)["lane:0:"] == ["a"]
    assert names(claim_all(broker)) == ["a"]


def test_a_lane_waits_as_long_as_the_job_that_came_back(redis, broker):
    job = claimed_job(broker)
    since = int(job.id[:12], 16)

    settle(broker, "release", job)

    assert snapshot(redis)["lanes"] == {"0:": since}
