"""What is done with jobs by their ids, and what people are told of it if a reply gets lost."""

import pytest

from django_rtq.console.nouns import OneJob
from django_rtq.console.reading.actions import ACTIONS, VERBS, How
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.exceptions import WrongState
from tests.support.jobs import (
    QUEUE,
    SEEDS,
    claim,
    dead_job,
    settle,
)

BODY = '{"task":"shop.tasks.mail","args":[1]}'
both = pytest.mark.parametrize("moment", ["before", "after"])


@both
@pytest.mark.parametrize(("state", "verb"), [(state, verb) for state in VERBS for verb in VERBS[state]])
def test_each_action_tells_what_it_did(redis, broker, readers, state, verb, moment):
    jobs = [SEEDS[state](broker).id for _ in range(3 if state != "running" else 1)]
    how = How(running="ask" if state == "running" else "leave")
    redis.load_scripts()
    redis.drop_connection(moment)

    assert readers.actions.done(verb, QUEUE, jobs, how) == jobs


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        (state, verb)
        for verb, action in ACTIONS.items()
        if action.done and action.script
        for state in SEEDS
        if state not in action.states
    ],
)
def test_an_action_leaves_jobs_in_other_states_alone(broker, readers, state, verb):
    job = SEEDS[state](broker)

    assert readers.actions.done(verb, QUEUE, [job.id, "unknown"]) == []
    assert readers.find(job.id).state in (state, "succeeded")


def test_requeue_tells_of_what_was_done_by_others_long_before_that_it_was_not_us(redis, broker, readers):
    job = dead_job(broker)
    assert readers.actions.done("requeue", QUEUE, [job.id]) == [job.id]
    record = redis.hget(broker.keys.of(QUEUE).jobs, job.id).split(b" ", 3)
    record[2] = b"%d" % (int(record[2]) - 60_000)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, b" ".join(record))
    redis.load_scripts()
    redis.drop_connection("after")
    assert readers.actions.done("requeue", QUEUE, [job.id, "unknown"]) == []


def test_requeue_tells_it_of_a_job_that_is_over_by_then(redis, broker, readers):
    job = dead_job(broker)
    readers.actions.done("requeue", QUEUE, [job.id])
    claim(broker, worker="w1")
    settle(broker, "ack", job, worker="w1")
    redis.load_scripts()
    redis.drop_connection("after")
    assert readers.actions.done("requeue", QUEUE, [job.id]) == [job.id]


def test_run_now_of_a_dead_letter_is_refused_after_a_lost_reply_too(redis, broker, readers):
    job = dead_job(broker)
    redis.load_scripts()
    redis.drop_connection("after")
    with pytest.raises(WrongState):
        readers.actions.run_now(job.id, QUEUE)


@both
def test_a_requeue_with_other_arguments_tells_what_it_did(redis, broker, readers, rtq, moment):
    job = dead_job(broker, body=BODY)
    redis.load_scripts()
    redis.drop_connection(moment, around=SCRIPTS["requeue"].sha)
    rtq.job(job.id).requeue_changed([2], {})
    assert readers.find(job.id, QUEUE).args == [2]


def test_one_that_somebody_else_changed_otherwise_is_refused(redis, broker, readers, rtq, monkeypatch):
    job = dead_job(broker, body=BODY)
    found = readers.find(job.id, QUEUE)
    rtq.job(job.id).requeue_changed([3], {})
    monkeypatch.setattr(OneJob, "details", lambda _: found)  # it was dead when we looked
    redis.load_scripts()
    redis.drop_connection("after", around=SCRIPTS["requeue"].sha)
    with pytest.raises(WrongState):
        rtq.job(job.id).requeue_changed([2], {})
