"""max_waiting: queues and clients that take in no more jobs than may wait."""

import time

import pytest

from django_rtq.core.broker.messages import EnqueueCall
from django_rtq.core.broker.scripts import SCRIPTS
from tests.core.broker.test_fire_schedule import SLOT_MS, fire
from tests.limits.lua.test_apply_settings import started_worker
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    claimed_jobs,
    dead_job,
    new_job,
    queued_job,
    scheduled_job,
    settle,
    unique_job,
)
from tests.support.snapshots import snapshot

FULL = "full queue 2 2"


def enqueue(broker, *jobs, **options):
    return broker.enqueue(QUEUE, jobs, **options)


def test_a_full_queue_stores_nothing(broker, limits, redis):
    limits.set_queue(QUEUE, max_waiting=2)
    queued_job(broker)
    scheduled_job(broker)
    before = snapshot(redis)

    assert enqueue(broker, new_job()) == [FULL]
    assert enqueue(broker, new_job(due="+60000")) == [FULL]
    assert enqueue(broker, new_job(), new_job()) == [FULL, FULL]
    assert broker.enqueue_unique(QUEUE, [unique_job()]) == [FULL]

    assert snapshot(redis) == before


@pytest.mark.parametrize("order", ["abcde", "edcba", "bcd", "dcb"])
def test_cancelled_jobs_do_not_fill_a_client(broker, limits, inspector, order):
    limits.set_client(QUEUE, "x", max_waiting=5)
    jobs = {name: queued_job(broker, name, client="x") for name in "abcde"}
    assert enqueue(broker, new_job(client="x")) == ["full client 5 5"]
    inspector.pause(QUEUE)

    for name in order:
        inspector.cancel(jobs[name].id)

    answers = enqueue(broker, *(new_job(client="x") for _ in range(6)))
    assert answers == ["ok"] * len(order) + ["full client 5 5"] * (6 - len(order))


def test_cancelled_jobs_of_others_make_no_room(broker, limits, inspector):
    limits.set_client(QUEUE, "x", max_waiting=1)
    queued_job(broker, client="x")
    others = [queued_job(broker, client="y") for _ in range(3)]
    inspector.cancel(others[1].id)

    assert enqueue(broker, new_job(client="x")) == ["full client 1 1"]


def test_a_queue_of_some_other_limit_is_not_slower(broker, limits):
    limits.set_queue(QUEUE, max_running=2)
    call = SCRIPTS["enqueue"].call(broker.keys.of(QUEUE), (*new_job()[:4], "", "", "{}"))

    assert broker.redis.execute_one(call) == b"ok"


def test_the_script_of_one_job_leaves_it_to_the_other(broker, limits, redis):
    queued_job(broker)
    limits.set_queue(QUEUE, max_waiting=2)
    before = snapshot(redis)
    call = SCRIPTS["enqueue"].call(broker.keys.of(QUEUE), (*new_job()[:4], "", "", "{}"))

    assert broker.redis.execute_one(call) == b"limited"

    assert snapshot(redis) == before
    assert enqueue(broker, new_job()) == ["ok"]
    assert enqueue(broker, new_job()) == [FULL]


def test_a_job_that_is_there_is_never_refused(broker, limits):
    job, later, again = new_job(), new_job(due="+60000"), unique_job()
    assert enqueue(broker, job) == ["ok"]
    assert enqueue(broker, later) == ["ok"]
    assert broker.enqueue_unique(QUEUE, [again]) == ["ok"]
    limits.set_queue(QUEUE, max_waiting=1)

    assert enqueue(broker, job) == ["exists"]
    assert enqueue(broker, job, later) == ["exists", "exists"]
    assert broker.enqueue_unique(QUEUE, [again, unique_job()]) == ["exists", f"duplicate {again.id}"]
    assert broker.enqueue_unique(QUEUE, [unique_job(on_conflict="replace")]) == [f"duplicate {again.id}"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_job_whose_reply_was_lost_is_not_refused(broker, limits, redis, moment):
    limits.set_queue(QUEUE, max_waiting=2)
    broker.register_queues([QUEUE])
    redis.drop_connection(moment)

    answer = {"before": "ok", "after": "exists"}[moment]
    assert enqueue(broker, *(new_job() for _ in range(2)), all_or_none=True) == [answer] * 2


def test_the_second_that_runs_after_its_owner_needs_a_place(broker, limits):
    broker.sign_on([QUEUE], WORKER)
    broker.enqueue_unique(QUEUE, [first := unique_job()])
    claim(broker)
    limits.set_queue(QUEUE, max_waiting=0)

    assert broker.enqueue_unique(QUEUE, [unique_job(on_conflict="rerun")]) == ["full queue 0 0"]
    limits.set_queue(QUEUE, max_waiting=1)
    assert broker.enqueue_unique(QUEUE, [unique_job(on_conflict="rerun")]) == [f"after {first.id}"]
    assert broker.enqueue_unique(QUEUE, [unique_job(on_conflict="rerun")]) == [f"duplicate {first.id}"]


def test_what_runs_or_is_dead_does_not_wait(broker, limits):
    dead_job(broker)
    jobs = claimed_jobs(broker, new_job(), new_job(), new_job())
    limits.set_queue(QUEUE, max_waiting=2)

    assert enqueue(broker, *(new_job() for _ in range(3))) == ["ok", "ok", FULL]
    settle(broker, "ack", jobs[0])
    assert enqueue(broker, new_job()) == [FULL]


def test_what_waits_again_is_never_refused(broker, limits, inspector):
    dead = dead_job(broker)
    jobs = claimed_jobs(broker, *(new_job(client="x") for _ in range(3)))
    limits.set_queue(QUEUE, max_waiting=0)
    limits.set_client(QUEUE, "x", max_waiting=0)

    settle(broker, "retry", jobs[0])
    settle(broker, "release", jobs[1])
    assert inspector.requeue(QUEUE, [dead.id]) == [dead.id]

    assert enqueue(broker, new_job(client="x")) == ["full client 2 0"]
    assert enqueue(broker, new_job(client="y")) == ["full queue 3 0"]


def test_the_jobs_of_a_client_count_in_all_bands(broker, limits):
    limits.set_default(QUEUE, max_waiting=4)
    limits.set_client(QUEUE, "big", max_waiting=None)
    for options in ({}, {"priority": 5}, {"priority": -5}, {"due": "+60000"}):
        queued_job(broker, client="x", **options)

    assert enqueue(broker, new_job(client="x"), new_job(client="y")) == ["full client 4 4", "ok"]
    assert enqueue(broker, *(new_job(client="big") for _ in range(6))) == ["ok"] * 6


def test_the_jobs_of_a_blocked_client_count(broker, limits):
    limits.set_client(QUEUE, "x", max_waiting=2)
    queued_job(broker, client="x")
    queued_job(broker, client="x", priority=5)
    limits.pause_client(QUEUE, "x")
    assert claim(broker) == []

    assert enqueue(broker, new_job(client="x")) == ["full client 2 2"]


def test_a_higher_limit_makes_room(broker, limits):
    limits.set_queue(QUEUE, max_waiting=0)
    assert enqueue(broker, new_job()) == ["full queue 0 0"]
    limits.set_queue(QUEUE, max_waiting=1)
    assert enqueue(broker, new_job()) == ["ok"]
    limits.set_queue(QUEUE, max_waiting="settings")
    assert enqueue(broker, new_job()) == ["ok"]


def test_all_or_none(broker, limits, redis):
    limits.set_queue(QUEUE, max_waiting=2)
    broker.register_queues([QUEUE])
    before = snapshot(redis)

    jobs = [new_job() for _ in range(3)]
    assert enqueue(broker, *jobs, all_or_none=True) == ["full", "full", FULL]
    unique = [unique_job(digest="a"), unique_job(digest="b"), unique_job(digest="a"), unique_job(digest="c")]
    assert broker.enqueue_unique(QUEUE, unique, all_or_none=True) == ["full", "full", f"duplicate {unique[0].id}", FULL]

    assert snapshot(redis) == before
    assert enqueue(broker, *jobs[:2], all_or_none=True) == ["ok", "ok"]
    assert enqueue(broker, *jobs[:2], all_or_none=True) == ["exists", "exists"]


def test_all_or_none_has_to_fit_into_one_script(broker):
    with pytest.raises(ValueError, match="takes at most 500 jobs of such a task, not 501"):
        enqueue(broker, *(new_job() for _ in range(501)), all_or_none=True)


def test_calls_in_one_round_trip(broker, limits):
    limits.set_queue(QUEUE, max_waiting=3)
    some, all_together, last = [new_job() for _ in range(2)], [new_job() for _ in range(2)], [new_job()]

    answers = broker.enqueue_calls(
        [EnqueueCall(QUEUE, some), EnqueueCall(QUEUE, all_together, True), EnqueueCall(QUEUE, last)]
    )

    assert answers == [["ok", "ok"], ["full", "full queue 3 3"], ["ok"]]


def test_a_slot_of_a_schedule_that_does_not_fit_is_skipped(broker, limits):
    broker.register_queues([QUEUE])
    broker.schedules.begin(QUEUE, "report", "d1", time.time_ns() // 1_000_000 - 60_000)
    limits.set_queue(QUEUE, max_waiting=0)

    assert fire(broker) == "full queue 0 0"
    limits.set_queue(QUEUE, max_waiting=None)
    assert fire(broker) == "already"
    assert fire(broker, SLOT_MS + 1) == "fired"


def test_limits_of_the_settings(broker):
    options = {"max_waiting": 3, "client": {"max_waiting": 1}, "clients": {"x": {"max_waiting": 2}}}
    started_worker(broker, **options)

    assert enqueue(broker, *(new_job(client="x") for _ in range(3))) == ["ok", "ok", "full client 2 2"]
    assert enqueue(broker, new_job(client="y"), new_job(client="y")) == ["ok", "full client 1 1"]
    assert enqueue(broker, new_job(client="z")) == ["full queue 3 3"]
