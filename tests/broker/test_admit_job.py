"""A job that was handed over goes on in its new shard."""

import pytest

from django_rtq.jobs.job import JobState
from tests.broker.model.carry_calls import TARGET, admit, begin, carry, hand_over, pack, receive
from tests.broker.model.step_calls import DONE, holder
from tests.support.jobs import (
    QUEUE,
    claim,
    claim_all,
    claimed_job,
    dead_job,
    entered_job,
    finished_job,
    held_job,
    queued_job,
    retrying_job,
    scheduled_job,
    settle,
    settlement,
    suspect_job,
    unique_job,
)
from tests.support.snapshots import MS, changes, snapshot


@pytest.fixture
def begun(broker):
    begin(broker)


def handed_over(broker, job):
    packed = pack(broker, job.id)
    receive(broker, job.id, packed=packed)
    assert hand_over(broker, job.id, packed[0]) == "handed"


def test_a_waiting_job_goes_to_the_end_of_its_lane(redis, broker, begun):
    other, job = queued_job(broker, "b", queue=TARGET, client="x"), queued_job(broker, "a", client="x")
    handed_over(broker, job)
    before = snapshot(redis, times=False)

    assert admit(broker, job.id) == "admitted"

    found = changes(before, snapshot(redis, times=False))
    assert found["bulk:lane:0:x"] == ["b", "a"]
    assert found["bulk:waiting_since"] == {"a": MS}
    assert found["bulk:arrivals"] == {"from 1": "call"}
    assert claim_all(broker, queue=TARGET) == [other.id, job.id]


@pytest.mark.parametrize("make", [scheduled_job, retrying_job, suspect_job])
def test_a_job_is_what_it_was(broker, begun, inspector, make):
    job = make(broker, client="x", expires="+500000")
    before = inspector.find(job.id)

    carry(broker, job.id)

    found = inspector.find(job.id)
    assert found.queue == TARGET
    for name in ("state", "due_at", "failures", "crashes", "errors", "expires_at", "client", "priority"):
        assert getattr(found, name) == getattr(before, name)


def test_a_retry_is_listed_as_one(redis, broker, begun):
    job = retrying_job(broker)

    carry(broker, job.id)

    keys = broker.keys.of(TARGET)
    assert redis.zscore(keys.retrying, job.id) == redis.zscore(keys.scheduled, job.id)


def test_a_dead_letter_stays_dead(broker, begun, inspector):
    job = dead_job(broker)
    before = inspector.find(job.id)

    carry(broker, job.id)

    found = inspector.find(job.id)
    assert (found.queue, found.state, found.died_at, found.errors) == (TARGET, "dead", before.died_at, before.errors)
    assert inspector.requeue(TARGET, [job.id]) == [job.id]


def test_an_outcome_keeps_its_times(redis, broker, begun, inspector):
    job = finished_job(broker)
    before = inspector.find(job.id)

    carry(broker, job.id)

    found = inspector.find(job.id)
    assert (found.queue, found.state, found.finished_at) == (TARGET, JobState.SUCCEEDED, before.finished_at)
    keys = broker.keys.of(TARGET)
    assert redis.zscore(keys.result_expiry, job.id) > redis.zscore(keys.result_times, job.id)


def test_a_job_goes_on_behind_its_steps(broker, begun):
    job = claimed_job(broker)
    broker.steps.write(holder(broker, job), "step charge", DONE)
    settle(broker, "release", job)

    carry(broker, job.id)

    keys = broker.keys.of(TARGET)
    assert broker.redis.execute([("HGETALL", keys.steps + job.id.encode()), ("HGETALL", keys.step_jobs)]) == [
        [b"step charge", DONE.encode()],
        [job.id.encode(), b""],
    ]


def test_a_unique_job_holds_its_key_there(broker, begun):
    job = entered_job(broker)

    carry(broker, job.id)

    assert broker.enqueue_unique(TARGET, [unique_job("b")]) == [f"duplicate {job.id}"]


def test_a_job_whose_key_another_one_has_there_goes_on_without_it(redis, broker, begun):
    job, later = entered_job(broker, "a"), unique_job("b", digest="d2", due="+60000")
    broker.enqueue_unique(QUEUE, [later])
    others = [unique_job("c"), unique_job("d", digest="d2")]
    broker.enqueue_unique(TARGET, others)

    for each in (job, later):
        carry(broker, each.id)

    assert set(redis.hkeys(broker.keys.of(TARGET).digests)) == {other.id.encode() for other in others}
    assert claim_all(broker, queue=TARGET) == [others[0].id, others[1].id, job.id]
    assert broker.enqueue_unique(TARGET, [unique_job("e")]) == [f"duplicate {others[0].id}"]


def test_a_job_and_the_one_that_waits_for_its_end(redis, broker, begun):
    owner = held_job(broker, "a", successor="b")
    (successor,) = [job_id.decode() for job_id in redis.zrange(broker.keys.of(QUEUE).scheduled, 0, -1)]
    settle(broker, "release", owner)

    carry(broker, owner.id)
    carry(broker, successor)

    assert claim(broker, 5, queues=[TARGET]) == [owner.id]
    broker.settle("w2", TARGET, settlement("ack", owner))
    assert redis.zscore(broker.keys.of(TARGET).scheduled, successor) < 1e13
    assert redis.get(broker.keys.of(TARGET).unique + b"d1") == successor.encode()


def test_a_job_that_has_come_back(redis, broker, begun):
    job, last = queued_job(broker, "a"), queued_job(broker, "b")
    redis.hset(broker.keys.of(TARGET).carried, job.id, "1")
    redis.sadd(broker.keys.of(TARGET).finished, job.id)

    carry(broker, job.id)

    assert redis.hexists(broker.keys.of(TARGET).carried, job.id) == 0
    assert claim_all(broker, queue=TARGET) == [job.id]
    assert claim_all(broker) == [last.id]


@pytest.mark.parametrize("times", [1, 2])
def test_a_job_that_has_stayed_is_forgotten(redis, broker, begun, times):
    job = claimed_job(broker)
    broker.steps.write(holder(broker, job), "step charge", DONE)
    settle(broker, "retry", job)
    before = snapshot(redis)
    receive(broker, job.id)

    answers = [admit(broker, job.id, name="call") for _ in range(times)]

    assert answers == ["forgotten", "gone"][:times]
    assert changes(before, snapshot(redis)) == {"rtq:queues": {QUEUE, TARGET}}


def test_an_older_drain_forgets_nothing(redis, broker, begun):
    job = queued_job(broker)
    receive(broker, job.id)
    begin(broker, "newer")
    before = snapshot(redis)

    assert admit(broker, job.id, name="call") == "outdated"
    assert snapshot(redis) == before


def test_what_is_not_on_hold_is_gone(redis, broker, begun):
    job = queued_job(broker)
    carry(broker, job.id)
    before = snapshot(redis)

    assert admit(broker, job.id) == "gone"
    assert admit(broker, "unknown") == "gone"
    assert snapshot(redis) == before


def test_after_a_torn_log_it_is_there_once(redis, broker, begun):
    job = queued_job(broker)
    handed_over(broker, job)
    keys = broker.keys.of(TARGET)
    texts = redis.lrange(keys.arriving + job.id.encode(), 0, -1)
    admit(broker, job.id)
    redis.rpush(keys.arriving + job.id.encode(), *texts)
    redis.hset(keys.arrivals, job.id, "1")

    assert admit(broker, job.id) == "admitted"
    assert claim_all(broker, queue=TARGET) == [job.id]
