"""— -> queued, or scheduled when it has a time."""

import time

import pytest

from django_rtq.exceptions import InvalidTask
from tests.support.jobs import (
    QUEUE,
    claim_all,
    job_id,
    new_job,
    queued_job,
)
from tests.support.snapshots import MS, live_jobs, snapshot

HOUR_MS = 3_600_000


def now_ms():
    return time.time_ns() // 1_000_000


def header_of(redis, job):
    return live_jobs(redis)[job.id].partition("\n")[0]


def test_it_goes_to_the_end_of_its_clients_lane(redis, broker):
    job = new_job("a", client="acme", priority=5, body='{"task": "t", "args": []}')

    assert broker.enqueue(QUEUE, [job]) == ["ok"]

    assert snapshot(redis, times=False) == {
        "rtq:queues": {QUEUE},
        "jobs": {"a": '5 3 <ms> 0 acme\n{"task": "t", "args": []}'},
        "lane:5:acme": ["a"],
        "ring:5": {"acme": 1},
        "bands": {"5": 5},
        "lanes": {"5:acme": MS},
        "turn": "1",
        "work_signal": {"work": 0},
        "stats": {"enqueued": 1},
    }


def test_in_front_it_comes_before_the_other_jobs_of_its_client(redis, broker):
    for name in "abc":
        queued_job(broker, name, client="acme", at_front=name == "c")

    assert snapshot(redis, times=False)["lane:0:acme"] == ["c", "a", "b"]


@pytest.mark.parametrize("milliseconds", [-2 * HOUR_MS, 2 * HOUR_MS])
def test_a_callers_wrong_clock_does_not_say_how_long_a_job_waits(redis, broker, milliseconds):
    job = new_job("a")._replace(id=job_id("a", now_ms() - milliseconds))

    broker.enqueue(QUEUE, [job])

    after = snapshot(redis)
    assert abs(int(after["waiting_since"][job.id]) - now_ms()) < 5000
    assert abs(after["lanes"]["0:"] - now_ms()) < 5000


def test_an_id_of_another_make_is_as_good(redis, broker):
    job = new_job()._replace(id="my own id")

    broker.enqueue(QUEUE, [job])

    assert set(snapshot(redis)["waiting_since"]) == {"my own id"}
    assert claim_all(broker) == ["my own id"]
    assert "waiting_since" not in snapshot(redis)


@pytest.mark.parametrize("body", ["[]", '{"n": 12345678901234567, "f": 1e400}', "\x00\r\n☃" * 3, "%s%1", "x" * 100_000])
def test_what_a_job_carries_is_not_touched(redis, broker, body):
    queued_job(broker, body=body)
    broker.sign_on([QUEUE], "w1")

    (claimed,) = broker.claim("w1", [QUEUE], 1).claimed

    assert claimed.records[0].partition(b"\n")[2] == body.encode()


@pytest.mark.parametrize(
    "job_id",
    ["my own id", f"{now_ms() - 2 * HOUR_MS:012x}-a", f"{now_ms() + 2 * HOUR_MS:012x}-a"],
    ids=["none", "slow", "fast"],
)
def test_a_callers_wrong_clock_does_not_say_when_a_large_job_may_start(redis, broker, job_id):
    body = "1 2 3\n%1 " + "x" * 5000
    job = new_job(client="%1 a")._replace(id=job_id, body=body)

    broker.enqueue(QUEUE, [job])

    _, crashes, ready, expires, client = header_of(redis, job).split(" ", 4)
    assert (crashes, expires, client) == ("3", "0", "%1 a")
    assert abs(int(ready) - now_ms()) < 5000
    assert live_jobs(redis)[job.id].partition("\n")[2] == body


def test_a_large_job_that_expires_does_so_by_the_servers_clock(redis, broker):
    job = queued_job(broker, expires="+5000", body="x" * 5000)

    _, _, ready, expires, _ = header_of(redis, job).split(" ")
    assert int(expires) == int(ready) + 5000


def test_a_client_keeps_its_turn(redis, broker):
    for client in ("x", "y", "x"):
        queued_job(broker, client=client)
    before = snapshot(redis)["ring:0"]

    queued_job(broker, client="x")

    assert before == snapshot(redis)["ring:0"] == {"x": 1, "y": 2}


def test_a_name_that_is_none_is_refused_before_it_is_in_the_list_of_queues(redis, broker):
    with pytest.raises(InvalidTask, match="'bad name!' is not a queue name"):
        broker.enqueue("bad name!", [new_job()])

    assert snapshot(redis) == {}
