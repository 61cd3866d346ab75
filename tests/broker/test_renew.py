"""Leases end later."""

import pytest

from tests.conftest import LEASE_SECONDS
from tests.seeds import QUEUE, WORKER, claimed_job, let_lapse
from tests.snapshots import changes, snapshot


def test_the_deadline_moves(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    let_lapse(broker, WORKER)
    before = snapshot(redis)
    seconds, _ = redis.time()

    earliest, unknown = broker.renew([QUEUE], [WORKER])

    assert earliest == LEASE_SECONDS
    assert unknown == set()
    assert set(changes(before, snapshot(redis))) <= {"workers", "sweep", "rtq:queues"}
    assert snapshot(redis)["workers"][WORKER] == pytest.approx((seconds + LEASE_SECONDS) * 1000, abs=1500)


def test_it_says_whom_it_does_not_know_and_does_not_bring_them_back(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    broker.sign_on([QUEUE], "half")

    _, unknown = broker.renew([QUEUE, "low"], [WORKER, "half", "nobody"])

    assert unknown == {"half", "nobody"}
    assert set(snapshot(redis)["low:workers"]) == {WORKER}


def test_a_worker_that_was_given_up_stays_so(redis, broker):
    claimed_job(broker)
    let_lapse(broker, WORKER)
    broker.reclaim(QUEUE)

    assert broker.renew([QUEUE], [WORKER])[1] == {WORKER}

    assert "workers" not in snapshot(redis)


def test_it_tells_when_the_first_lease_of_anybody_ends(redis, broker):
    for queue, worker in ((QUEUE, WORKER), ("low", "silent")):
        broker.sign_on([queue], worker)
    seconds, _ = redis.time()
    redis.zadd(broker.keys.of("low").workers, {"silent": seconds * 1000 - 5000})

    assert broker.renew([QUEUE, "low"], [])[0] == 0
    assert broker.renew([QUEUE], [])[0] == pytest.approx(LEASE_SECONDS, abs=1)


def test_where_nobody_works_there_is_no_deadline(redis, broker):
    assert broker.renew([QUEUE], []) == (None, set())


def test_a_silence_of_half_a_lease_holds_the_reclaiming_for_one_lease(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    seconds, _ = redis.time()
    redis.hset(broker.keys.of(QUEUE).sweep, "contact", int((seconds - LEASE_SECONDS / 2) * 1000) - 1)

    broker.renew([QUEUE], [WORKER])

    sweep = snapshot(redis)["sweep"]
    assert int(sweep["hold"]) - int(sweep["contact"]) == LEASE_SECONDS * 1000


def test_a_shorter_silence_holds_nothing(redis, broker):
    broker.sign_on([QUEUE], WORKER)

    broker.renew([QUEUE], [WORKER])

    assert "hold" not in snapshot(redis)["sweep"]


def test_time_never_goes_back(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    seconds, _ = redis.time()
    high = (seconds + 600) * 1000
    redis.hset(broker.keys.of(QUEUE).sweep, "high", high)

    broker.renew([QUEUE], [WORKER])

    assert snapshot(redis)["workers"][WORKER] == high + LEASE_SECONDS * 1000


def test_a_clock_that_was_hours_ahead_is_believed_when_it_is_put_right(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    seconds, _ = redis.time()
    redis.hset(broker.keys.of(QUEUE).sweep, "high", (seconds + 7200) * 1000)

    broker.renew([QUEUE], [WORKER])

    assert snapshot(redis)["workers"][WORKER] == pytest.approx((seconds + LEASE_SECONDS) * 1000, abs=1500)
