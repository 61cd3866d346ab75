"""A claim settles the jobs that have succeeded: running -> succeeded."""

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    new_job,
    settlement,
)
from tests.support.snapshots import snapshot


def test_what_is_too_much_for_one_call_is_settled_before_it(redis, broker):
    first, rest = [new_job() for _ in range(500)], [new_job() for _ in range(30)]
    claimed_jobs(broker, *first)
    claimed_jobs(broker, *rest)
    other = claimed_job(broker, queue="low")
    settlements = {QUEUE: settlement("ack", *first, *rest), "low": settlement("ack", other)}

    fetched = broker.claim(WORKER, [QUEUE], 1, settlements=settlements)

    assert (fetched.stale, fetched.error, any(settlements.values())) == ([], None, False)
    assert not {key for key in snapshot(redis) if "running" in key}


def test_what_a_refused_claim_was_to_settle_is_settled_by_itself(redis, broker):
    job = claimed_job(broker)
    settlements = {QUEUE: settlement("ack", job)}
    redis.answer_once(b"-ERR no\r\n")

    fetched = broker.claim(WORKER, [QUEUE], 1, settlements=settlements)

    assert (fetched.stale, fetched.error, any(settlements.values())) == ([], None, False)
    assert not {key for key in snapshot(redis) if "running" in key}


def test_what_is_refused_again_is_still_in_the_settlement(redis, broker):
    job, low = claimed_job(broker), claimed_job(broker, queue="low")
    settlements = {QUEUE: settlement("ack", job), "low": settlement("ack", low)}
    redis.set("{rtq:default}:results", "of the wrong type")

    assert broker.claim(WORKER, [QUEUE], 1, settlements=settlements).error is not None

    assert {queue: left.job_ids() for queue, left in settlements.items()} == {QUEUE: {job.id.encode()}, "low": set()}
    redis.delete("{rtq:default}:results")
    assert broker.claim(WORKER, [QUEUE], 1, settlements=settlements).stale == []
    assert not any(settlements.values())
