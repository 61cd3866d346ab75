"""running -> retrying."""

import json

import pytest

from django_rtq.broker.settlement import UNKNOWN_CLIENT, Settlement
from tests.support.jobs import (
    ERROR,
    QUEUE,
    WORKER,
    claim,
    claimed_job,
    let_fall_due,
    scheduled_job,
    settle,
)
from tests.support.server_clock import server_ms
from tests.support.single_steps import promote
from tests.support.snapshots import GONE, MS, changes, snapshot


def run_again(broker, job):
    let_fall_due(broker, job)
    promote(broker, QUEUE)
    assert claim(broker, worker=WORKER) == [job.id]


def test_it_waits_for_its_next_attempt(redis, broker):
    job = claimed_job(broker, "a")
    before = snapshot(redis, times=False)

    assert settle(broker, "retry", job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "scheduled": {"a": MS},
        "scheduled_by_client": {"": MS},
        "scheduled_by_client:": {"a": MS},
        "retrying": {"a": MS},
        "due_signal": {"due": 0},
        "failures": {"a": "1"},
        "errors": {"a": ERROR + "\n"},
        "stats": {"enqueued": 1, "failed": 1},
    }


def test_it_waits_as_long_as_was_said(redis, broker):
    job, began = claimed_job(broker), server_ms(redis)

    settle(broker, "retry", job, wait_ms=90_000)

    after = snapshot(redis)
    assert after["scheduled"] == after["retrying"]
    assert began <= after["scheduled"][job.id] - 90_000 <= server_ms(redis)


@pytest.mark.parametrize(("wait_ms", "tokens"), [(30_000, 1), (90_000, 0)])
def test_the_scheduler_is_woken_only_by_an_earlier_time(redis, broker, wait_ms, tokens):
    scheduled_job(broker, due="+60000")
    redis.zpopmin(broker.keys.of(QUEUE).due_signal)

    settle(broker, "retry", claimed_job(broker), wait_ms=wait_ms)

    assert redis.zcard(broker.keys.of(QUEUE).due_signal) == tokens


def test_a_worker_that_could_not_run_it_spends_no_attempt(redis, broker):
    job = claimed_job(broker, "a")

    settle(broker, "retry", job, counted=0)

    after = snapshot(redis, times=False)
    assert after["scheduled"] == {"a": MS}
    assert "failures" not in after
    assert after["stats"] == {"enqueued": 1}


def test_the_last_five_failures_are_kept(redis, broker):
    job = claimed_job(broker)
    for number in range(7):
        entry = [job.id, 0, 1, json.dumps({"error": f"{number}%d%1"}), ""]
        broker.settle(WORKER, QUEUE, Settlement(retry=entry))
        run_again(broker, job)

    after = snapshot(redis)
    assert after["failures"] == {job.id: "7"}
    lines = after["errors"][job.id].splitlines()
    assert [json.loads(line)["error"] for line in lines] == [f"{number}%d%1" for number in range(2, 7)]


def test_the_next_attempt_has_the_next_number(redis, broker):
    job = claimed_job(broker, "a")
    settle(broker, "retry", job)
    run_again(broker, job)

    assert snapshot(redis, times=False)["running:w1"] == {"a": "2 <ms>"}


def test_who_does_not_know_the_client_need_not_tell_it(redis, broker):
    job = claimed_job(broker, "a", client="acme")

    assert broker.settle(WORKER, QUEUE, Settlement(retry=[job.id, 60_000, 1, ERROR, UNKNOWN_CLIENT])) == []

    after = snapshot(redis, times=False)
    assert after["scheduled_by_client"] == {"acme": MS}
    assert after["scheduled_by_client:acme"] == {"a": MS}
