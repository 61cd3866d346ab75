"""max_waiting: queues and clients that take in no more jobs than may wait."""

import asyncio
import time

import pytest

from django_rtq.core.broker import broker as broker_module
from django_rtq.core.broker.messages import EnqueueCall
from django_rtq.core.broker.scripts import SCRIPTS
from tests.core.broker.test_fire_schedule import SLOT_MS, fire
from tests.limits.lua.test_limits_of_settings import started_worker
from tests.support.jobs import (
    QUEUE,
    new_job,
    queued_job,
)
from tests.support.snapshots import snapshot

FULL = "full queue 2 2"


def enqueue(broker, *jobs, **options):
    return broker.enqueue(QUEUE, jobs, **options)


def test_a_queue_of_some_other_limit_is_not_slower(broker, rtq):
    rtq.queues[QUEUE].limit(max_running=2)
    call = SCRIPTS["enqueue"].call(broker.keys.of(QUEUE), (*new_job()[:4], "", "", "{}"))

    assert broker.redis.execute_one(call) == b"ok"


def test_the_script_of_one_job_leaves_it_to_the_other(broker, redis, rtq):
    queued_job(broker)
    rtq.queues[QUEUE].limit(max_waiting=2)
    before = snapshot(redis)
    call = SCRIPTS["enqueue"].call(broker.keys.of(QUEUE), (*new_job()[:4], "", "", "{}"))

    assert broker.redis.execute_one(call) == b"limited"

    assert snapshot(redis) == before
    assert enqueue(broker, new_job()) == ["ok"]
    assert enqueue(broker, new_job()) == [FULL]


@pytest.mark.parametrize("method", ["enqueue", "aenqueue"])
def test_one_job_is_sent_once_to_the_script_that_can_take_it(broker, rtq, round_trips, monkeypatch, method):
    monkeypatch.setattr(broker_module, "JOBS_OF_LIMITED", 2)
    queue = rtq.queues[QUEUE]

    def scripts_for_one():
        round_trips.clear()
        answer = getattr(broker, method)(QUEUE, [new_job()])
        assert (asyncio.run(answer) if method == "aenqueue" else answer) == ["ok"]
        return [names[-1] for names in round_trips if names != ["SCRIPT LOAD"]]

    plain, many = "EVALSHA enqueue", "EVALSHA enqueue_many"
    queue.limit(max_waiting=9)
    assert [scripts_for_one() for _ in range(3)] == [["EXISTS", many], [many], [plain, many]]
    queue.limit(max_waiting="settings")
    assert [scripts_for_one() for _ in range(3)] == [[many], [plain], [plain]]
    queue.limit(max_waiting=9)
    assert [scripts_for_one() for _ in range(3)] == [[plain, many], [many], [plain, many]]


def test_all_or_none_has_to_fit_into_one_script(broker):
    with pytest.raises(ValueError, match="takes at most 500 jobs of such a task, not 501"):
        enqueue(broker, *(new_job() for _ in range(501)), all_or_none=True)


def test_calls_in_one_round_trip(broker, rtq):
    rtq.queues[QUEUE].limit(max_waiting=3)
    some, all_together, last = [new_job() for _ in range(2)], [new_job() for _ in range(2)], [new_job()]

    answers = broker.enqueue_calls(
        [EnqueueCall(QUEUE, some), EnqueueCall(QUEUE, all_together, True), EnqueueCall(QUEUE, last)]
    )

    assert answers == [["ok", "ok"], ["full", "full queue 3 3"], ["ok"]]


def test_a_slot_of_a_schedule_that_does_not_fit_is_skipped(broker, rtq):
    broker.register_queues([QUEUE])
    broker.schedules.begin(QUEUE, "report", "d1", time.time_ns() // 1_000_000 - 60_000)
    rtq.queues[QUEUE].limit(max_waiting=0)

    assert fire(broker) == "full queue 0 0"
    rtq.queues[QUEUE].limit(max_waiting=None)
    assert fire(broker) == "already"
    assert fire(broker, SLOT_MS + 1) == "fired"


def test_limits_of_the_settings(broker):
    options = {"max_waiting": 3, "client": {"max_waiting": 1}, "clients": {"x": {"max_waiting": 2}}}
    started_worker(broker, **options)

    assert enqueue(broker, *(new_job(client="x") for _ in range(3))) == ["ok", "ok", "full client 2 2"]
    assert enqueue(broker, new_job(client="y"), new_job(client="y")) == ["ok", "full client 1 1"]
    assert enqueue(broker, new_job(client="z")) == ["full queue 3 3"]
