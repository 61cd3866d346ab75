"""— -> queued, or scheduled when it has a time; several at one stroke."""

from tests.support.jobs import (
    QUEUE,
    new_job,
)
from tests.support.snapshots import MS, snapshot


def test_each_goes_to_the_place_that_it_would_have_alone(redis, broker):
    jobs = [
        new_job("a", client="x"),
        new_job("b", client="y", expires="1900000000000"),
        new_job("c", client="x", at_front=True),
        new_job("d", client="x", priority=5, body='{"args": []}'),
        new_job("e", due="+60000"),
    ]

    assert broker.enqueue(QUEUE, jobs) == ["ok"] * 5

    assert snapshot(redis, times=False) == {
        "rtq:queues": {QUEUE},
        "jobs": {
            "a": "0 3 <ms> 0 x\n{}",
            "b": "0 3 <ms> <ms> y\n{}",
            "c": "0 3 <ms> 0 x\n{}",
            "d": '5 3 <ms> 0 x\n{"args": []}',
            "e": "0 3 <ms> 0 \n{}",
        },
        "lane:0:x": ["c", "a"],
        "lane:0:y": ["b"],
        "lane:5:x": ["d"],
        "ring:0": {"x": 1, "y": 2},
        "ring:5": {"x": 3},
        "bands": {"0": 0, "5": 5},
        "lanes": {"0:x": MS, "0:y": MS, "5:x": MS},
        "turn": "3",
        "work_signal": {"work": 0},
        "scheduled": {"e": MS},
        "scheduled_by_client": {"": MS},
        "scheduled_by_client:": {"e": MS},
        "due_signal": {"due": 0},
        "stats": {"enqueued": 5},
    }


def test_an_id_is_taken_once_in_one_call(redis, broker):
    one, other = new_job("a"), new_job("b")

    assert broker.enqueue(QUEUE, [one, other, one]) == ["ok", "ok", "exists"]

    assert snapshot(redis, times=False)["lane:0:"] == ["a", "b"]
    assert snapshot(redis)["stats"] == {"enqueued": 2}
