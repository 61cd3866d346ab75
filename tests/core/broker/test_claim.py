"""queued -> running."""

from time import sleep

import pytest

from tests.support.jobs import (
    QUEUE,
    WORKER,
    claim,
    lose_record,
    names,
    new_job,
    queued_job,
    settle,
)
from tests.support.snapshots import GONE, MS, changes, snapshot


def claim_from(broker, *queues, wanted=10, **options):
    """What each queue answers to a worker that has signed on everywhere."""
    broker.sign_on(queues, WORKER)
    return broker.claim(WORKER, queues, wanted, **options).claimed


# One queue


def test_the_next_jobs_get_into_the_workers_list(redis, broker):
    for name, client in [("a", "x"), ("b", "x"), ("c", "y")]:
        queued_job(broker, name, client=client)
    broker.sign_on([QUEUE], WORKER)
    before = snapshot(redis, times=False)

    (claimed,) = broker.claim(WORKER, [QUEUE], 2).claimed

    assert (claimed.queue, claimed.status, claimed.counts) == (QUEUE, "ok", {})
    assert names(claimed.ids) == ["a", "c"]
    assert changes(before, snapshot(redis, times=False)) == {
        "running:w1": {"a": "1 <ms>", "c": "1 <ms>"},
        "lane:0:x": ["b"],
        "lane:0:y": GONE,
        "lanes": {"0:x": MS},
        "ring:0": {"x": 3},
        "turn": "3",
    }


def test_nothing_to_claim_is_an_empty_answer(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    before = snapshot(redis)

    assert broker.claim(WORKER, [QUEUE], 5).claimed == []
    assert snapshot(redis) == before


# What a torn log or a cancelled job leaves in lanes


def test_of_a_great_many_cancelled_jobs_a_claim_passes_over_some_and_says_that_there_is_more(redis, broker):
    jobs = [new_job(client=str(number % 3)) for number in range(1200)]
    broker.enqueue(QUEUE, jobs)
    queued_job(broker, "last")
    queued_job(broker, queue="low")
    for job in jobs:
        redis.hdel(broker.keys.of(QUEUE).jobs, job.id)
        redis.hset(broker.keys.of(QUEUE).cancelled_in_lane, job.id, f"0:{job.client}")

    answers = [claim_from(broker, QUEUE, "low", wanted=2) for _ in range(3)]

    assert [[part.status for part in parts] for parts in answers] == [["more"], ["more"], ["ok", "ok"]]
    assert [len(part.ids) for parts in answers for part in parts] == [0, 0, 1, 1]
    assert "cancelled_in_lane" not in snapshot(redis)


def test_a_claim_that_stops_at_cancelled_jobs_leaves_the_token(redis, broker):
    jobs = [new_job() for _ in range(501)]
    broker.enqueue(QUEUE, jobs)
    lose_record(broker, *jobs)

    assert [part.status for part in claim_from(broker, QUEUE)] == ["more"]
    assert snapshot(redis)["work_signal"] == {"work": 0}
    assert [part.status for part in claim_from(broker, QUEUE)] == ["ok"]
    assert not {"work_signal", "bands"} & set(snapshot(redis))


def test_of_a_great_many_clients_without_jobs_a_claim_passes_over_some(redis, broker, keys):
    queued_job(broker, "last")
    redis.zadd(keys.ring + b"0", {f"gone-{number}": -1 - number for number in range(700)})

    assert [part.status for part in claim_from(broker, QUEUE, wanted=1)] == ["more"]
    assert names(claim(broker)) == ["last"]


def test_a_claim_brings_no_more_than_scripts_carry(redis, broker):
    broker.enqueue(QUEUE, [new_job(client=str(number)) for number in range(6000)])

    assert len(claim(broker, 5000)) == 500


def test_an_empty_lane_in_the_ring_is_taken_out(redis, broker, keys):
    queued_job(broker, "a", client="x")
    redis.zadd(keys.ring + b"0", {"empty": 0})
    redis.zadd(keys.ring + b"9", {"empty": 0})
    redis.zadd(keys.bands, {"9": 9, "11": 11})

    assert names(claim(broker, 10)) == ["a"]
    assert not {"ring:0", "ring:9", "ring:11", "bands", "work_signal"} & set(snapshot(redis))


def test_limits_of_which_nobody_is_near_are_looked_up_once(redis, broker, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=10)
    queued_job(broker, "a"), queued_job(broker, "b")
    broker.sign_on([QUEUE], WORKER)
    redis.config_resetstat()

    assert len(broker.claim(WORKER, [QUEUE], 1).claimed[0].ids) == 1
    calls = {name.removeprefix("cmdstat_"): stats["calls"] for name, stats in redis.info("commandstats").items()}
    assert calls["exists"] == 2  # rare keys, and of these limits alone
    assert calls["hmget"] == 4  # two of limits, one of counts, one of records
    assert redis.exists(broker.keys.of(QUEUE).work_signal)


def test_work_of_a_higher_priority_is_signalled_where_others_are_at_their_limits(redis, broker, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    for client, priority in [("x", 5), ("y", 5), ("x", 0)]:
        queued_job(broker, client=client, priority=priority)

    assert len(claim(broker, 1)) == 1  # of x
    assert redis.exists(broker.keys.of(QUEUE).work_signal)  # y may start


def test_each_of_many_clients_starts_as_many_jobs_as_its_rate_allows(broker, rtq):
    rtq.queues[QUEUE].limit_clients(rate="1/h", burst=2)
    for number in range(36):
        queued_job(broker, client=f"c{number % 12}")

    assert len(claim(broker, 6)) == 6
    assert len(claim(broker, 30)) == 18  # six have one start left, six have two
    assert claim(broker, 30) == []


def test_a_client_that_was_away_starts_no_more_jobs_than_its_burst(broker, rtq):
    rtq.queues[QUEUE].limit_clients(rate="1000/s", burst=2)
    for _ in range(20):
        queued_job(broker, client="x")

    assert len(claim(broker, 1)) == 1
    sleep(0.02)
    assert len(claim(broker, 20)) == 2


def test_of_six_clients_two_have_limits_of_their_own(broker, rtq):
    rtq.clients["c0"].limit(QUEUE, max_running=3)
    rtq.clients["c1"].pause(QUEUE, by="me")
    rtq.queues[QUEUE].limit_clients(max_running=1)
    for number in range(18):
        queued_job(broker, client=f"c{number % 6}")

    assert len(claim(broker, 30)) == 7


def test_limits_of_many_clients_become_a_table_again_after_a_restart(redis, broker, rtq):
    limits = broker.keys.of(QUEUE).limits
    rtq.queues[QUEUE].limit_clients(max_running=1)
    redis.hset(limits, mapping={f"client:c{number}": "max_running=1" for number in range(40)})  # as Redis loads it
    assert redis.object("encoding", limits) != b"hashtable"
    for number in range(5):
        queued_job(broker, client=f"c{number}")

    assert len(claim(broker, 4)) == 4  # one more is read
    assert redis.object("encoding", limits) != b"hashtable"
    for number in range(6):
        queued_job(broker, client=f"d{number}")
    assert len(claim(broker, 10)) == 7
    assert redis.object("encoding", limits) == b"hashtable"
    assert redis.hlen(limits) == 41


@pytest.mark.parametrize(("clients", "encoding"), [(32, b"listpack"), (33, b"skiplist")])
def test_many_clients_are_in_skip_lists(redis, broker, keys, clients, encoding, rtq):
    rtq.queues[QUEUE].limit_clients(rate="1/h", burst=2)
    for _ in range(3):
        for number in range(clients):
            queued_job(broker, client=f"c{number}")

    assert len(claim(broker, clients)) == clients
    for key in (keys.ring + b"0", keys.lanes, keys.rate_times):
        assert redis.object("encoding", key).replace(b"ziplist", b"listpack") == encoding  # Redis before 7
        assert redis.zcard(key) == clients


@pytest.mark.parametrize(("jobs", "encoding"), [(31, b"listpack"), (33, b"hashtable")])
def test_many_jobs_are_held_in_a_hash_table(redis, broker, keys, readers, jobs, encoding, rtq):
    rtq.queues[QUEUE].limit_clients(max_running=1)
    queued = [queued_job(broker, client=f"c{number}") for number in range(jobs)]

    assert len(claim(broker, 100)) == jobs
    for key in (keys.running("w2"), keys.running_counts):
        assert redis.object("encoding", key).replace(b"ziplist", b"listpack") == encoding  # Redis before 7
    assert readers.clients.limits(QUEUE).running == jobs
    assert set(broker.attempts("w2", [QUEUE])[QUEUE].values()) == {1}
    settle(broker, "ack", *queued, worker="w2")
    assert not {"running_counts", "running:w2"} & set(snapshot(redis))
