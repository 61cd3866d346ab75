"""A job that has a record and is in no place is queued again; a job that is in one is left alone."""

import pytest

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import (
    QUEUE,
    WORKER,
    asked_job,
    claim_all,
    claimed_job,
    dead_job,
    held_job,
    job_id,
    names,
    new_job,
    queued_job,
    retrying_job,
    scheduled_job,
)
from tests.support.single_steps import count_lost, repair_lanes
from tests.support.snapshots import snapshot

DAY_MS = 86_400_000


def lost_job(redis, broker, name=None, **options):
    """A job that its lane has lost: its client has no other."""
    job = queued_job(broker, name, **options)
    lane = f"{options.get('priority', 0)}:{options.get('client', '')}".encode()
    redis.delete(broker.keys.of(QUEUE).lane + lane)
    while repair_lanes(broker, QUEUE):
        pass
    return job


def all_places(broker):
    """Jobs in each place: in lanes, running, waiting for their time, dead."""
    for client in "xyz":
        broker.enqueue(QUEUE, [new_job(client=client) for _ in range(3)])
    claimed_job(broker, priority=9)
    held_job(broker, priority=8)
    scheduled_job(broker)
    retrying_job(broker, priority=7)
    dead_job(broker, priority=6)


def test_a_lost_job_is_queued_at_the_front_of_its_lane(redis, broker):
    job = lost_job(redis, broker, "lost", client="x", priority=3)
    queued_job(broker, "younger", client="x", priority=3)

    assert broker.repair_jobs(QUEUE) == [(job.id, "queued")]

    assert names(claim_all(broker)) == ["lost", "younger"]


def test_it_is_queued_once(redis, broker):
    lost_job(redis, broker, "lost")

    assert len(broker.repair_jobs(QUEUE)) == 1
    assert broker.repair_jobs(QUEUE) == []
    assert names(claim_all(broker)) == ["lost"]
    assert broker.repair_jobs(QUEUE) == []  # it runs


def test_jobs_in_any_place_are_left_alone(redis, broker):
    all_places(broker)
    before = snapshot(redis)

    for _ in range(5):
        assert broker.repair_jobs(QUEUE) == []

    assert snapshot(redis) == before
    assert count_lost(broker) == 0


def test_a_missing_queue_is_left_alone(redis, broker):
    assert broker.repair_jobs(QUEUE) == []
    assert snapshot(redis) == {}


def test_a_lost_job_that_was_asked_to_stop_ends_as_cancelled(redis, broker):
    job = asked_job(broker)
    redis.delete(broker.keys.of(QUEUE).running(WORKER))

    assert broker.repair_jobs(QUEUE) == [(job.id, "cancelled")]

    assert "jobs" not in snapshot(redis)
    assert job.id in snapshot(redis)["results"]


def test_a_lost_job_behind_others_is_found_when_it_is_older_than_all(redis, broker):
    old = new_job()._replace(id=job_id("old", 10**12))
    broker.enqueue(QUEUE, [new_job("young"), old])
    redis.hset(broker.keys.of(QUEUE).waiting_since, old.id, 10**14)
    redis.lrem(broker.keys.of(QUEUE).lane + b"0:", 1, old.id)

    assert broker.repair_jobs(QUEUE) == []  # most likely it waits behind the other
    assert count_lost(broker) == 1

    assert names(claim_all(broker)) == ["young"]
    assert broker.repair_jobs(QUEUE) == [(old.id, "queued")]


def test_a_job_that_was_put_in_front_of_older_ones_is_in_its_lane(redis, broker):
    queued_job(broker, "older")
    queued_job(broker, "front", at_front=True)
    redis.zadd(broker.keys.of(QUEUE).lanes, {"0:": 10**14})  # a torn log has bent it: all are looked for

    assert broker.repair_jobs(QUEUE) == []
    assert names(claim_all(broker)) == ["front", "older"]


def test_a_lane_in_no_index_gets_its_turn(redis, broker, keys):
    queued_job(broker, "a", client="x", priority=5)
    redis.delete(keys.lanes, keys.ring + b"5", keys.bands, keys.work_signal)
    assert count_lost(broker) == 1  # nobody finds it

    assert broker.repair_jobs(QUEUE) == []

    assert count_lost(broker) == 0
    assert names(claim_all(broker)) == ["a"]


def test_a_lane_that_is_too_long_is_searched_later(redis, broker):
    lost = lost_job(redis, broker, "lost")
    lane = broker.keys.of(QUEUE).lane + b"0:"
    redis.rpush(lane, *["no record"] * 50_001)
    assert broker.repair_jobs(QUEUE) == []

    redis.lpop(lane)
    assert broker.repair_jobs(QUEUE) == [(lost.id, "queued")]


def test_beside_too_many_workers_nothing_is_searched(redis, broker, keys):
    lost = lost_job(redis, broker)
    redis.zadd(keys.signed_on, {f"w{number}": 1 for number in range(1001)})
    assert broker.repair_jobs(QUEUE) == []

    redis.zrem(keys.signed_on, "w7")
    assert broker.repair_jobs(QUEUE) == [(lost.id, "queued")]


@pytest.mark.parametrize("workers", [1, 999])
def test_a_running_job_is_found_with_any_worker(redis, broker, keys, workers):
    job = claimed_job(broker, worker="z")
    redis.zadd(keys.signed_on, {f"w{number}": 1 for number in range(workers)})

    assert broker.repair_jobs(QUEUE) == []
    assert broker.running("z", [QUEUE])[QUEUE] == [job.id.encode()]


def test_large_records_are_looked_at_one_by_one(redis, broker):
    for name in "abc":
        lost_job(redis, broker, name, client=name, body='{"task": "%s"}' % ("x" * 400_000))

    assert len(broker.repair_jobs(QUEUE)) == 1
    assert len(broker.repair_jobs(QUEUE)) <= 1  # the one that has its place may come first


def test_among_many_records_it_is_found(redis, broker):
    for number in range(5):
        broker.enqueue(QUEUE, [new_job(client=str(number)) for _ in range(100)])
    lost = lost_job(redis, broker, client="x")

    for _ in range(500):
        if taken := broker.repair_jobs(QUEUE):
            break
    assert taken == [(lost.id, "queued")]


# The count, in repair_lanes


def test_lost_jobs_are_counted_and_noted_since_when(redis, broker):
    all_places(broker)
    lost_job(redis, broker, client="v")
    clock = broker.keys.of(QUEUE).clock

    assert count_lost(broker) == 1
    number, since = redis.hget(clock, "lost").split()
    lost_job(redis, broker, client="w")
    assert count_lost(broker) == 2
    assert (number, redis.hget(clock, "lost").split()) == (b"1", [b"2", since])

    while broker.repair_jobs(QUEUE):
        pass
    assert count_lost(broker) == 0
    assert not redis.hexists(clock, "lost")


def test_jobs_that_were_cancelled_in_their_lanes_are_in_no_place_rightly(redis, broker, access):
    all_places(broker)
    for job in list(snapshot(redis)["lane:0:x"])[1:]:
        access.cancel(job)

    assert count_lost(broker) == 0


def test_an_id_without_a_record_hides_a_lost_job_and_all_are_looked_at(redis, broker, keys):
    lost_job(redis, broker, client="x")
    redis.zadd(keys.dead, {"gone": 1, "gone too": 1})

    assert count_lost(broker) == -1
    assert not redis.hexists(keys.clock, "lost")


def test_too_many_lanes_are_not_counted(redis, broker):
    queued_job(broker)
    redis.zadd(broker.keys.of(QUEUE).lanes, {f"0:{number}": 1 for number in range(1001)})

    command = SCRIPTS["repair_lanes"].call(broker.keys.of(QUEUE), (0, 1, 0))
    assert broker.redis.execute_one(command)[1] == -1


@pytest.mark.parametrize(("since_ms", "is_counted"), [(999, False), (1000, True), (-DAY_MS, True)])
def test_jobs_are_counted_from_time_to_time(redis, broker, since_ms, is_counted):
    lost_job(redis, broker)
    keys, (seconds, micros) = broker.keys.of(QUEUE), redis.time()
    now = seconds * 1000 + micros // 1000
    later = now + 10_000  # time stands still
    stopped = {"counted": later - since_ms, "high": later, "anchor": f"{10 * later} {now + DAY_MS}"}
    redis.hset(keys.clock, mapping=stopped)

    command = SCRIPTS["repair_lanes"].call(keys, (0, 100, 1000))
    assert broker.redis.execute_one(command)[1] == int(is_counted)
