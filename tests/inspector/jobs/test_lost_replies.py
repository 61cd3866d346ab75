"""A reply gets lost, and what people did is done: they are told so, and not that somebody else was first."""

import pytest

from django_rtq.broker.scripts import SCRIPTS
from django_rtq.exceptions import WrongState
from tests.support.jobs import QUEUE, claim, dead_job, queued_job, retrying_job, scheduled_job, settle

BODY = '{"task":"shop.tasks.mail","args":[1]}'
both = pytest.mark.parametrize("moment", ["before", "after"])


@both
def test_requeue_tells_what_it_did(redis, broker, inspector, moment):
    jobs = [dead_job(broker), dead_job(broker)]
    waits = queued_job(broker)
    redis.load_scripts()
    redis.drop_connection(moment)
    ids = [job.id for job in (*jobs, waits)]
    assert inspector.requeue(QUEUE, ids)[:2] == ids[:2]


def test_requeue_tells_of_what_was_done_by_others_long_before_that_it_was_not_us(redis, broker, inspector):
    job = dead_job(broker)
    assert inspector.requeue(QUEUE, [job.id]) == [job.id]
    record = redis.hget(broker.keys.of(QUEUE).jobs, job.id).split(b" ", 3)
    record[2] = b"%d" % (int(record[2]) - 60_000)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, b" ".join(record))
    redis.load_scripts()
    redis.drop_connection("after")
    assert inspector.requeue(QUEUE, [job.id]) == []


def test_requeue_tells_it_of_a_job_that_is_over_by_then(redis, broker, inspector):
    job = dead_job(broker)
    inspector.requeue(QUEUE, [job.id])
    claim(broker, worker="w1")
    settle(broker, "ack", job, worker="w1")
    redis.load_scripts()
    redis.drop_connection("after")
    assert inspector.requeue(QUEUE, [job.id]) == [job.id]


@both
def test_discard_tells_what_it_did(redis, broker, inspector, moment):
    jobs, waits = [dead_job(broker), dead_job(broker)], queued_job(broker)
    redis.load_scripts()
    redis.drop_connection(moment)
    ids = [job.id for job in (*jobs, waits)]
    assert inspector.discard(QUEUE, ids) == ids[:2]


@both
@pytest.mark.parametrize("seed", [scheduled_job, retrying_job])
def test_run_now_tells_what_it_did(redis, broker, inspector, moment, seed):
    job = seed(broker)
    redis.load_scripts()
    redis.drop_connection(moment)
    inspector.run_now(job.id, QUEUE)
    assert inspector.find(job.id, QUEUE).state == "queued"


def test_run_now_of_a_dead_letter_is_refused_after_a_lost_reply_too(redis, broker, inspector):
    job = dead_job(broker)
    redis.load_scripts()
    redis.drop_connection("after")
    with pytest.raises(WrongState):
        inspector.run_now(job.id, QUEUE)


@both
def test_a_requeue_with_other_arguments_tells_what_it_did(redis, broker, inspector, moment):
    job = dead_job(broker, body=BODY)
    redis.load_scripts()
    redis.drop_connection(moment, around=requeue_changed_sha())
    inspector.requeue_changed(QUEUE, job.id, [2], {})
    assert inspector.find(job.id, QUEUE).args == [2]


def test_one_that_somebody_else_changed_otherwise_is_refused(redis, broker, inspector, monkeypatch):
    job = dead_job(broker, body=BODY)
    found = inspector.find(job.id, QUEUE)
    inspector.requeue_changed(QUEUE, job.id, [3], {})
    monkeypatch.setattr(inspector, "find", lambda *_: found)  # it was dead when we looked
    redis.load_scripts()
    redis.drop_connection("after", around=requeue_changed_sha())
    with pytest.raises(WrongState):
        inspector.requeue_changed(QUEUE, job.id, [2], {})


def requeue_changed_sha():
    """As it is sent to Redis."""
    return SCRIPTS["requeue_changed"].sha
