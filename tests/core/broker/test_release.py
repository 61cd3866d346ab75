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
    names,
    new_job,
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
