"""— -> queued, once for each slot of a schedule."""

import time

import pytest

from tests.support.jobs import QUEUE, claim, claim_all, held_job, job_id, new_job, settle, unique_job
from tests.support.snapshots import MS, changes, place_of, snapshot

NOW_MS = time.time_ns() // 1_000_000
SLOT_MS = NOW_MS - 1000


@pytest.fixture
def begun(broker):
    broker.register_queues([QUEUE])
    broker.schedules.begin(QUEUE, "report", "d1", NOW_MS - 60_000)


def fire(broker, slot_ms=SLOT_MS, job=None, **options):
    return broker.schedules.fire(QUEUE, "report", slot_ms, job or new_job("a"), **options)


def test_a_slot_starts_a_job(redis, broker, begun):
    before = snapshot(redis, times=False)

    assert (
        fire(broker, job=new_job("a", client="x", priority=5, max_crashes=2, expires="+60000", body="{1}")) == "fired"
    )

    assert changes(before, snapshot(redis, times=False)) == {
        "schedules": {"report": f"{MS} a d1 {MS}"},
        "jobs": {"a": f"5 2 {MS} {MS} x\n{{1}}"},
        "lane:5:x": ["a"],
        "lanes": {"5:x": MS},
        "ring:5": {"x": 1},
        "bands": {"5": 5},
        "turn": "1",
        "work_signal": {"work": 0},
        "stats": {"enqueued": 1},
    }


def test_it_waits_and_expires_from_its_slot_on(redis, broker, begun):
    job = new_job(expires="+500")._replace(id=job_id("a", SLOT_MS))

    fire(broker, job=job)
    fire(broker, SLOT_MS + 7, new_job("b")._replace(id=job_id("b", SLOT_MS + 7)))

    after = snapshot(redis)
    assert after["lanes"] == {"0:": SLOT_MS}
    assert after["jobs"][job.id].startswith(f"0 3 {SLOT_MS} {SLOT_MS + 500} ")


def test_the_next_slot_starts_another(broker, begun):
    first, second = new_job("a"), new_job("b")

    assert [fire(broker, job=first), fire(broker, SLOT_MS + 1, second)] == ["fired", "fired"]

    assert claim_all(broker) == [first.id, second.id]


@pytest.mark.parametrize("before_ms", [0, 1, SLOT_MS - 1], ids=["same", "earlier", "long ago"])
def test_a_slot_that_is_over_changes_nothing(redis, broker, begun, before_ms):
    fire(broker)
    before = snapshot(redis)

    assert fire(broker, SLOT_MS - before_ms, new_job("b")) == "already"

    assert snapshot(redis) == before


def test_a_schedule_that_has_not_begun_changes_nothing(redis, broker):
    assert fire(broker) == "unknown"

    assert snapshot(redis) == {}


# -- overlap


@pytest.mark.parametrize("state", ["queued", "running", "retrying"])
def test_a_slot_is_let_pass_while_the_last_job_lives(redis, broker, begun, state):
    job = new_job("a")
    fire(broker, job=job)
    if state != "queued":
        claim(broker)
    if state == "retrying":
        settle(broker, "retry", job, worker="w2")
    before = snapshot(redis)

    assert fire(broker, SLOT_MS + 1, new_job("b"), may_overlap=False) == "overlap"

    assert changes(before, snapshot(redis)) == {
        "schedules": {"report": f"{SLOT_MS + 1} {job.id} d1 {NOW_MS - 60_000}"},
    }
    assert fire(broker, SLOT_MS + 1, new_job("c")) == "already"


@pytest.mark.parametrize("end", ["ack", "bury", "expire"])
def test_a_slot_fires_when_the_last_job_is_over(redis, broker, begun, end):
    job, following = new_job("a"), new_job("b")
    fire(broker, job=job)
    claim(broker)
    settle(broker, end, job, worker="w2")

    assert fire(broker, SLOT_MS + 1, following, may_overlap=False) == "fired"

    assert place_of(redis, following) == "lane:0:"


# -- unique


@pytest.mark.parametrize("on_conflict", ["return", "raise", "replace", "rerun"])
def test_a_slot_is_let_pass_while_a_job_like_its_own_lives(redis, broker, begun, on_conflict):
    other = held_job(broker, "other")
    before = snapshot(redis)

    assert fire(broker, job=unique_job("a", on_conflict=on_conflict)) == f"duplicate {other.id}"

    assert changes(before, snapshot(redis)) == {"schedules": {"report": f"{SLOT_MS} - d1 {NOW_MS - 60_000}"}}
    assert fire(broker, job=unique_job("b")) == "already"
    settle(broker, "ack", other)
    assert fire(broker, SLOT_MS + 1, unique_job("c")) == "fired"


def test_a_server_that_fell_back_does_not_take_a_job_for_its_own_duplicate(redis, broker, begun):
    state = redis.hgetall("{rtq:default}:schedules")
    job = unique_job("a")
    fire(broker, job=job)
    redis.hset("{rtq:default}:schedules", mapping=state)

    assert fire(broker, job=job) == "fired"

    assert claim_all(broker) == [job.id]


# -- trouble


@pytest.mark.parametrize("end", [None, "ack"])
def test_a_server_that_fell_back_does_not_start_a_job_again_that_it_knows(redis, broker, begun, end):
    state = redis.hgetall("{rtq:default}:schedules")
    job = new_job("a")
    fire(broker, job=job)
    if end:
        claim(broker)
        settle(broker, end, job, worker="w2")
    redis.hset("{rtq:default}:schedules", mapping=state)
    before = snapshot(redis)

    assert fire(broker, job=job) == "fired"

    assert set(changes(before, snapshot(redis))) == {"schedules"}
