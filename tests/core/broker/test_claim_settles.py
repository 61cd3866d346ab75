"""A claim settles the jobs that have succeeded: running -> succeeded."""

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    new_job,
    queued_job,
    settlement,
)
from tests.support.snapshots import snapshot


def test_jobs_of_several_queues_are_settled_with_the_claim(redis, broker):
    mine = {queue: claimed_job(broker, queue=queue) for queue in ("default", "low", "else")}
    strange = claimed_job(broker, worker="other", queue="low")
    following = queued_job(broker, queue="low")
    settlements = {queue: settlement("ack", job) for queue, job in mine.items()}
    settlements["low"].ack += settlement("ack", strange).ack

    fetched = broker.claim(WORKER, ["low", QUEUE], 5, settlements=settlements)

    assert (fetched.stale, [part.ids for part in fetched.claimed]) == ([strange.id], [[following.id.encode()]])
    assert not any(settlements.values())
    assert {key for key in snapshot(redis) if "running" in key} == {"low:running:w1", "low:running:other"}


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
