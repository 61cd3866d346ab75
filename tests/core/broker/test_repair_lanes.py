"""What a torn log has bent is put right."""

import pytest

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, claim_all, claimed_job, names, queued_job
from tests.support.single_steps import repair_lanes
from tests.support.snapshots import MS, changes, snapshot


def test_a_lane_that_is_in_no_ring_gets_a_turn(redis, broker):
    queued_job(broker, "a", client="x", priority=-5)
    keys = broker.keys.of(QUEUE)
    redis.delete(keys.ring + b"-5", keys.bands, keys.work_signal)
    before = snapshot(redis, times=False)

    assert repair_lanes(broker, QUEUE) == 0

    assert changes(before, snapshot(redis, times=False)) == {
        "ring:-5": {"x": 2},
        "bands": {"-5": -5},
        "work_signal": {"work": 0},
        "turn": "2",
    }
    assert names(claim_all(broker)) == ["a"]


@pytest.mark.parametrize("lost", ["bands", "work_signal"])
def test_a_hint_that_got_lost_comes_back(redis, broker, lost):
    queued_job(broker)
    before = snapshot(redis, times=False)
    redis.delete(getattr(broker.keys.of(QUEUE), lost))

    repair_lanes(broker, QUEUE)

    assert snapshot(redis, times=False) == before


def test_what_is_right_stays_as_it_is(redis, broker):
    for client in "xyz":
        queued_job(broker, client=client)
    claimed_job(broker, client="v", priority=5)
    before = snapshot(redis, times=False)

    assert repair_lanes(broker, QUEUE) == 0

    assert snapshot(redis, times=False) == before


@pytest.mark.parametrize(("clients", "encoding"), [(32, b"listpack"), (33, b"skiplist")])
def test_turns_of_many_clients_become_skip_lists(redis, broker, clients, encoding):
    for number in range(clients):
        queued_job(broker, client=f"c{number}")
    for number in range(33):
        queued_job(broker, client=f"c{number}", priority=5)
    queued_job(broker, client="c1", priority=-5)
    before = snapshot(redis, times=False)

    assert repair_lanes(broker, QUEUE) == 0

    keys = broker.keys.of(QUEUE)
    for key, expected in [("ring:0", encoding), ("ring:5", b"skiplist"), ("ring:-5", b"listpack")]:
        found = redis.object("encoding", keys.ring + key[5:].encode())
        assert found.replace(b"ziplist", b"listpack") == expected  # Redis before 7
    assert redis.object("encoding", keys.lanes) == b"skiplist"
    assert snapshot(redis, times=False) == before


def test_a_lane_without_jobs_is_forgotten(redis, broker):
    queued_job(broker, client="x")
    redis.zadd(broker.keys.of(QUEUE).lanes, {"0:gone": 1})

    repair_lanes(broker, QUEUE)

    assert set(snapshot(redis)["lanes"]) == {"0:x"}


def test_a_lane_waits_as_long_as_its_first_job(redis, broker):
    job = queued_job(broker, client="x")
    redis.zadd(broker.keys.of(QUEUE).lanes, {"0:x": 1})

    repair_lanes(broker, QUEUE)

    assert snapshot(redis)["lanes"] == {"0:x": int(job.id[:12], 16)}


def test_many_lanes_are_looked_at_in_several_calls(redis, broker):
    for number in range(250):
        queued_job(broker, client=str(number))
    keys = broker.keys.of(QUEUE)
    redis.delete(keys.ring + b"0")
    redis.delete(*[keys.lane + b"0:%d" % number for number in range(0, 250, 5)])

    start, starts = 0, []
    while not starts or start:
        start = repair_lanes(broker, QUEUE, start)
        starts.append(start)

    assert len(starts) <= 4
    assert set(snapshot(redis)["ring:0"]) == {str(number) for number in range(250) if number % 5}
    assert len(snapshot(redis)["lanes"]) == 200


def test_a_moment_of_it_costs_nothing_in_an_empty_queue(redis, broker):
    before = snapshot(redis)

    assert repair_lanes(broker, QUEUE) == 0

    assert snapshot(redis) == before


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_processing_list_whose_worker_is_gone_is_reclaimed(redis, broker, limit):
    for name in ("idle", "other"):
        broker.sign_on([QUEUE], name)
    job = claimed_job(broker, worker="lost")
    redis.zrem(broker.keys.of(QUEUE).workers, "lost")

    audit_all(broker, limit)

    assert broker.reclaim(QUEUE)[1] == [(job.id, "queued")]
    assert snapshot(redis)["crashes"] == {job.id: "1"}
    assert set(snapshot(redis)["workers"]) == set(snapshot(redis)["signed_on"]) == {"idle", "other"}


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_worker_that_is_gone_and_holds_nothing_is_forgotten(redis, broker, limit):
    for number in range(5):
        broker.sign_on([QUEUE], f"gone-{number}")
        redis.zrem(broker.keys.of(QUEUE).workers, f"gone-{number}")
        broker.sign_on([QUEUE], f"here-{number}")

    audit_all(broker, limit)

    assert set(snapshot(redis)["signed_on"]) == {f"here-{number}" for number in range(5)}


def test_who_lives_and_holds_jobs_is_left_alone(redis, broker):
    claimed_job(broker)
    before = snapshot(redis)

    repair_lanes(broker, QUEUE)

    assert snapshot(redis) == before


def audit_all(broker, limit):
    """Again and again, as heartbeats do."""
    start = 0
    for _ in range(20):
        start = broker.redis.execute_one(SCRIPTS["repair_lanes"].call(broker.keys.of(QUEUE), (start, limit, 0)))[0]


def test_a_client_with_a_colon_in_its_name_is_found(redis, broker):
    queued_job(broker, "a", client="a:b:c")
    redis.delete(broker.keys.of(QUEUE).ring + b"0")

    repair_lanes(broker, QUEUE)

    assert snapshot(redis, times=False)["lanes"] == {"0:a:b:c": MS}
    assert names(claim_all(broker)) == ["a"]
