"""running -> scheduled: a job sleeps, or waits for an event."""

import pytest

from tests.protocol.model.step_calls import holder, read_steps, send_event, suspend
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claim,
    claimed_job,
    held_job,
    let_fall_due,
    unique_job,
)
from tests.support.single_steps import promote
from tests.support.snapshots import GONE, MS, changes, snapshot


@pytest.fixture
def job(broker):
    """It runs."""
    return claimed_job(broker, "a")


def again(broker, job):
    """It falls due, and runs again."""
    let_fall_due(broker, job)
    promote(broker, QUEUE)
    assert claim(broker, worker=WORKER) == [job.id]


def test_it_waits_in_scheduled_and_nothing_is_counted(redis, broker):
    job = claimed_job(broker, "a", client="x", expires="+1000")
    before = snapshot(redis, times=False)

    assert suspend(broker, job) == []

    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": GONE,
        "jobs": {"a": f"0 3 {MS} 0 x\n{{}}"},
        "scheduled": {"a": MS},
        "scheduled_by_client": {"x": MS},
        "scheduled_by_client:x": {"a": MS},
        "due_signal": {"due": 0},
        "step_jobs": {"a": f"{MS} 0 0 1 approved"},
    }


def test_the_next_run_is_the_same_attempt(redis, broker, job):
    suspend(broker, job, waits_for="1 0")

    again(broker, job)

    assert snapshot(redis, times=False)["running:w1"] == {"a": f"1 {MS}"}


def test_a_job_that_is_missing_is_dropped(redis, broker, job):
    redis.hdel(broker.keys.of(QUEUE).jobs, job.id)

    assert suspend(broker, job) == []
    assert {"running:w1", "scheduled", "step_jobs"}.isdisjoint(snapshot(redis))


def test_one_that_was_asked_to_stop_ends_as_cancelled(redis, broker, readers):
    job = asked_job(broker, "a")

    suspend(broker, job)

    assert readers.find(job.id).state == "cancelled"
    assert not [name for name in snapshot(redis) if "step" in name]


def test_what_went_wrong_before_a_new_wait_counts_no_longer(redis, broker, keys, job):
    for text, is_new in (("1 0", True), ("1 0", False), ("2 0", True)):
        for key in (keys.failures, keys.crashes):
            redis.hset(key, job.id, 2)

        suspend(broker, job, waits_for=text)

        assert snapshot(redis).keys().isdisjoint({"failures", "crashes"}) is is_new
        again(broker, job)


def test_waiting_for_the_same_again_it_keeps_its_time(redis, broker, job):
    suspend(broker, job, ms=90_000)
    due = snapshot(redis)["scheduled"][job.id]
    settle_early(broker, redis, job)

    suspend(broker, job, ms=90_000)

    assert snapshot(redis)["scheduled"] == {job.id: due}


def settle_early(broker, redis, job):
    """It runs before its time."""
    redis.zadd(broker.keys.of(QUEUE).scheduled, {job.id: 1})
    promote(broker, QUEUE)
    assert claim(broker, worker=WORKER) == [job.id]


def test_an_event_that_came_meanwhile_queues_it_at_once(redis, broker, job):
    assert send_event(broker, job) == "sent"

    suspend(broker, job)

    assert claim(broker, worker=WORKER) == [job.id]
    assert "scheduled" not in snapshot(redis)


def test_a_wait_that_timed_out_stays_so_when_the_next_one_begins(redis, broker, job):
    suspend(broker, job, ms=0)
    assert claim(broker, worker=WORKER) == [job.id]

    suspend(broker, job, waits_for="0 0 2 approved")

    assert broker_fields(redis, broker, job) == {b"event 1 approved": b"", b"last approved": b"1"}
    assert send_event(broker, job) == "sent"
    assert redis.hget(broker.keys.of(QUEUE).steps + job.id.encode(), "event 2 approved").endswith(b" 7")
    assert claim(broker, worker=WORKER) == [job.id]


def broker_fields(redis, broker, job):
    return redis.hgetall(broker.keys.of(QUEUE).steps + job.id.encode())


def test_a_wait_that_was_left_early_has_not_timed_out(redis, broker, job):
    suspend(broker, job)
    settle_early(broker, redis, job)

    suspend(broker, job, waits_for="1 0")

    assert broker_fields(redis, broker, job) == {}


def test_a_unique_job_keeps_its_digest_for_longer(redis, broker):
    job = held_job(broker, "a")

    suspend(broker, job, ms=90_000)

    key = broker.keys.of(QUEUE).unique + b"d1"
    assert redis.get(key) == job.id.encode()
    assert 3_680_000 < redis.pttl(key) <= 3_690_000


def test_a_job_that_is_unique_until_its_start_does_not_hold_its_digest_again(redis, broker):
    job = unique_job("a", until="start")
    broker.enqueue(QUEUE, [job])
    broker.sign_on([QUEUE], WORKER)
    broker.claim(WORKER, [QUEUE], 1)

    suspend(broker, job)

    assert broker.enqueue(QUEUE, [unique_job("b", until="start")]) == ["ok"]


def test_a_place_under_a_limit_is_given_back(redis, broker):
    broker.limits.change(QUEUE, {"run:queue": "max_running=1"})
    job = claimed_job(broker, "a")
    assert snapshot(redis)["running_counts"] == {"queue": "1", "client:": "1"}

    suspend(broker, job)

    assert "running_counts" not in snapshot(redis)


@pytest.mark.parametrize("verb", ["cancel", "purge"])
def test_what_it_remembers_goes_with_it(redis, broker, job, readers, access, verb):
    suspend(broker, job)

    access.cancel(job.id) if verb == "cancel" else readers.sweeps.purge_some(QUEUE, None)

    assert not [name for name in snapshot(redis) if "step" in name]


def test_run_now_ends_the_wait(redis, broker, job, readers):
    suspend(broker, job)

    readers.actions.run_now(job.id, QUEUE)

    assert claim(broker, worker=WORKER) == [job.id]
    known = read_steps(broker, holder(broker, job))
    assert known.wait.due_ms <= known.now_ms
    assert send_event(broker, job) == "late"


@pytest.mark.parametrize(
    ("on_conflict", "answer"), [("rerun", "after"), ("replace", "duplicate"), ("return", "duplicate")]
)
def test_an_equal_job_meets_it_as_one_that_runs(redis, broker, on_conflict, answer):
    job = held_job(broker, "a")
    suspend(broker, job)
    before = snapshot(redis)

    told = broker.enqueue(QUEUE, [unique_job("b", on_conflict=on_conflict)])

    assert told == [f"{answer} {job.id}"]
    assert snapshot(redis)["jobs"][job.id] == before["jobs"][job.id]
    assert snapshot(redis)["scheduled"][job.id] == before["scheduled"][job.id]


def test_a_sleep_that_is_over_is_no_event(redis, broker, job):
    suspend(broker, job, ms=0, waits_for="1 0")
    assert claim(broker, worker=WORKER) == [job.id]

    suspend(broker, job, waits_for="1 0 1 approved")

    assert broker_fields(redis, broker, job) == {}


def test_a_digest_that_another_job_holds_by_now_stays_there(redis, broker):
    job = held_job(broker, "a")
    key = broker.keys.of(QUEUE).unique + b"d1"
    redis.set(key, "other", px=60_000)

    suspend(broker, job, ms=90_000)

    assert redis.get(key) == b"other"
    assert redis.pttl(key) <= 60_000
