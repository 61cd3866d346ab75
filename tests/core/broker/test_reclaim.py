"""running, lease over -> queued, or dead."""

import json

import pytest

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim_all,
    claimed_job,
    claimed_jobs,
    let_lapse,
    names,
    new_job,
    queued_job,
)
from tests.support.redis_server import LEASE_SECONDS
from tests.support.single_steps import renew
from tests.support.snapshots import GONE, MS, changes, place_of, snapshot


def lapsed_job(broker, *names, **options):
    """A job of a worker that is silent for too long."""
    job = claimed_job(broker, *names, **options)
    let_lapse(broker, options.get("worker", WORKER))
    return job


def test_a_silent_workers_job_is_queued_again_and_a_crash_counted(redis, broker):
    job = lapsed_job(broker, "a", client="x")
    before = snapshot(redis, times=False)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "queued")])

    after = snapshot(redis, times=False)
    line = json.loads(after["errors"]["a"].replace(MS, "0"))
    assert line["error_class"] == "django_rtq.exceptions.WorkerLost"
    assert (line["attempt"], line["worker"]) == (1, WORKER)
    assert line["error"] == "The worker died while it ran this job: crash 1, 3 allowed."
    assert changes(before, after) == {
        "running:w1": GONE,
        "workers": GONE,
        "signed_on": GONE,
        "lane:0:x": ["a"],
        "lanes": {"0:x": MS},
        "ring:0": {"x": 2},
        "bands": {"0": 0},
        "turn": "2",
        "work_signal": {"work": 0},
        "crashes": {"a": "1"},
        "errors": after["errors"],
        "stats": {"enqueued": 1, "reclaimed": 1, "failed": 1, "crashed": 1},
    }


def test_over_the_limit_of_crashes_a_job_is_dead(redis, broker):
    job = lapsed_job(broker, "a", max_crashes=0)
    before = snapshot(redis, times=False)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "dead")])

    after = snapshot(redis, times=False)
    assert changes(before, after) == {
        "running:w1": GONE,
        "workers": GONE,
        "signed_on": GONE,
        "dead": {"a": MS},
        "crashes": {"a": "1"},
        "errors": after["errors"],
        "stats": {"enqueued": 1, "reclaimed": 1, "failed": 1, "crashed": 1, "dead": 1},
    }


def test_a_worker_whose_lease_runs_is_left_alone(redis, broker):
    claimed_job(broker)
    before = snapshot(redis)

    seconds, reclaimed = broker.reclaim(QUEUE)

    assert 0 < seconds <= LEASE_SECONDS
    assert reclaimed == []
    assert set(changes(before, snapshot(redis))) <= {"clock"}


def test_jobs_come_back_to_the_front_in_the_order_of_their_making(redis, broker):
    claimed_jobs(broker, *(new_job(name) for name in "abc"))
    queued_job(broker, "d")
    let_lapse(broker, WORKER)

    broker.reclaim(QUEUE)

    assert names(claim_all(broker)) == ["a", "b", "c", "d"]


def test_the_limit_counts_for_all_workers_together(redis, broker):
    for worker in ("w1", "w2", "w3"):
        claimed_jobs(broker, new_job(), new_job(), worker=worker)
    let_lapse(broker, "w1", "w2", "w3")

    _, reclaimed = broker.reclaim(QUEUE, limit=3)

    assert len(reclaimed) == 3
    assert set(snapshot(redis)["workers"]) == {"w2", "w3"}


@pytest.mark.parametrize("record", ["", "{}", "no header at all"])
def test_a_record_without_a_header_may_not_crash_at_all(redis, broker, record):
    job = lapsed_job(broker)
    redis.hset(broker.keys.of(QUEUE).jobs, job.id, record)

    assert broker.reclaim(QUEUE) == (None, [(job.id, "dead")])


def let_pass(broker, redis, leases):
    """Let time pass in which nobody says anything: as if all that is noted had been so much earlier."""
    keys, milliseconds = broker.keys.of(QUEUE), int(leases * LEASE_SECONDS * 1000)
    for worker in redis.zrange(keys.workers, 0, -1):
        redis.zincrby(keys.workers, -milliseconds, worker)
    for name in ("contact", "hold", "high"):
        if redis.hexists(keys.clock, name):
            redis.hincrby(keys.clock, name, -milliseconds)


def let_pass_in_beats(broker, redis, leases, *workers):
    """Let time pass while some workers renew their leases three times a lease; what is taken from others meanwhile."""
    taken = []
    while leases > 0:
        let_pass(broker, redis, min(leases, 1 / 3))
        renew(broker, [QUEUE], workers)
        taken += broker.reclaim(QUEUE)[1]
        leases -= 1 / 3
    return taken


@pytest.mark.parametrize("leases", [0.5, 1, 2.5])
def test_after_an_outage_nothing_is_taken_from_workers_that_could_not_renew(redis, broker, leases):
    job = claimed_job(broker)
    for _ in range(8):  # more often than a lease
        let_pass(broker, redis, leases + 0.01)
        assert broker.reclaim(QUEUE)[1] == []
        let_pass(broker, redis, 0.25)  # the longest until a heartbeat tries again
        assert broker.reclaim(QUEUE)[1] == []
        assert renew(broker, [QUEUE], [WORKER])[1] == set()

    assert place_of(redis, job) == "running:w1"


def test_right_after_an_outage_nothing_is_taken_at_all(redis, broker):
    claimed_job(broker)
    let_pass_in_beats(broker, redis, 0.8, "other")  # w1 is late
    let_pass(broker, redis, 0.6)

    assert broker.reclaim(QUEUE) == (LEASE_SECONDS / 2, [])
    let_pass(broker, redis, 0.3)
    held, reclaimed = broker.reclaim(QUEUE)

    assert 0 < held <= LEASE_SECONDS / 2
    assert reclaimed == []


@pytest.mark.parametrize("up", [0.2, 0.4, 0.9])
def test_outages_that_come_again_and_again_do_not_keep_the_jobs_of_the_dead(redis, broker, up):
    """They cost a lease, and the time to come back, of the time in which Redis was there."""
    job = claimed_job(broker)
    taken, leases = [], 0.0
    while not taken and leases < 3:
        taken = let_pass_in_beats(broker, redis, up, "other")
        leases += up
        let_pass(broker, redis, 1)
        renew(broker, [QUEUE], ["other"])  # Redis is back

    assert taken == [(job.id, "queued")]
    assert leases <= 1.5 + up
