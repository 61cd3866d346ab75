"""A job from another shard is on hold: nobody sees it yet."""

import pytest

from django_rtq.broker.messages import NewJob
from django_rtq.exceptions import BrokerFull
from tests.broker.model.carry_calls import TARGET, admit, begin, call, carry, hand_over, pack, receive
from tests.broker.model.step_calls import DONE, holder
from tests.support.jobs import (
    QUEUE,
    claim,
    claimed_job,
    dead_job,
    finished_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    settlement,
)
from tests.support.snapshots import changes, snapshot


@pytest.fixture
def begun(broker):
    begin(broker)


def test_it_waits_and_no_worker_gets_it(redis, broker, begun):
    job = queued_job(broker, "a", client="x")
    before = snapshot(redis)

    assert receive(broker, job.id) == "held"

    found = changes(before, snapshot(redis))
    assert found.keys() == {"bulk:arrivals", f"bulk:arriving:{job.id}", "rtq:queues"}
    assert found["bulk:arrivals"] == {"from 1": "call", job.id: "1"}
    assert claim(broker, queues=[TARGET]) == []


def test_sent_again_after_a_change_it_is_as_the_job_is_now(redis, broker, begun):
    job = claimed_job(broker)
    broker.steps.write(holder(broker, job), "step charge", DONE)
    settle(broker, "retry", job)
    receive(broker, job.id)
    redis.hset(broker.keys.of(QUEUE).errors, job.id, "other\n")

    assert receive(broker, job.id) == "held"

    taken = snapshot(redis)
    assert taken[f"bulk:arriving:{job.id}"][5] == "other\n"
    assert len(taken[f"bulk:arriving:{job.id}"]) == 10
    assert taken[f"bulk:steps:{job.id}"] == {"step charge": DONE, "aside": ""}


def test_lines_that_are_over_keep_their_time(redis, broker, begun):
    job = finished_job(broker)
    log = broker.keys.of(QUEUE).log_of(job.id)
    redis.rpush(log, "one", "two")
    redis.pexpire(log, 60_000)

    receive(broker, job.id)

    there = broker.keys.of(TARGET).log_of(job.id)
    assert redis.lrange(there, 0, -1) == [b"one", b"two"]
    assert 0 < redis.pttl(there) <= 60_000


@pytest.mark.parametrize("how", ["waiting", "finished", "finished without an outcome"])
def test_a_job_that_is_there_already_is_left_alone(redis, broker, begun, how):
    job = queued_job(broker, "a")
    packed = pack(broker, job.id)
    broker.enqueue(TARGET, [NewJob(*job)])
    if how != "waiting":
        assert claim(broker, queues=[TARGET]) == [job.id]
        keep_ms = 60_000 if how == "finished" else 0
        outcome = '"done"' if how == "finished" else ""
        broker.settle("w2", TARGET, settlement("ack", job, keep_ms=keep_ms, outcome=outcome))
    before = snapshot(redis)

    assert receive(broker, job.id, packed=packed) == "there"
    assert snapshot(redis) == before


def test_what_this_shard_has_handed_over_may_come_back(redis, broker, begun):
    job = queued_job(broker, "a")
    carry(broker, job.id)
    keys = broker.keys
    redis.hset(keys.of(TARGET).carried, "", "call")
    redis.hset(keys.of(QUEUE).arrivals, "from 0", "call")

    _, texts, *_ = call(broker, TARGET, "pack_job", job.id)

    assert call(broker, QUEUE, "receive_job", job.id, 0, "call", -2, len(texts), 0, *texts) == b"held"


def test_an_older_drain_stores_nothing(redis, broker, begun):
    job = queued_job(broker, "a")
    begin(broker, "newer")
    before = snapshot(redis)

    assert receive(broker, job.id) == "outdated"
    assert snapshot(redis) == before


def test_a_full_server_takes_none_and_says_so(redis, broker, begun):
    job = queued_job(broker, "a")
    packed = pack(broker, job.id)

    with redis.full_memory(), pytest.raises(BrokerFull):
        receive(broker, job.id, packed=packed)

    assert hand_over(broker, "unknown") == "missing"
    assert admit(broker, job.id) == "gone"


@pytest.mark.parametrize("make", [queued_job, scheduled_job, retrying_job, dead_job, finished_job])
def test_who_looks_for_it_sees_it_as_it_will_be(broker, inspector, begun, make):
    job = make(broker, client="x")
    before = inspector.find(job.id)
    packed = pack(broker, job.id)
    receive(broker, job.id, packed=packed)
    hand_over(broker, job.id, packed[0])

    found = inspector.find(job.id)

    assert found.queue == TARGET
    for name in ("state", "due_at", "died_at", "finished_at", "failures", "crashes", "errors", "client"):
        assert getattr(found, name) == getattr(before, name)
