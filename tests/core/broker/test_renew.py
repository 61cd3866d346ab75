"""Leases end later."""

import pytest

from django_rtq.core.broker.worker_broker import RENEWED_AT_ONCE, TENDED_IN_A_LEASE
from tests.support.jobs import (
    QUEUE,
    WORKER,
    claimed_job,
    claimed_jobs,
    let_fall_due,
    new_job,
    queued_job,
    scheduled_job,
)
from tests.support.redis_server import LEASE_SECONDS
from tests.support.single_steps import renew, renewed
from tests.support.snapshots import snapshot
from tests.support.waiting import server_ms

DAY_MS = 86_400_000


def test_it_says_whom_it_does_not_know_and_does_not_bring_them_back(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    broker.sign_on([QUEUE], "half")

    _, unknown = renew(broker, [QUEUE, "low"], [WORKER, "half", "nobody"])

    assert unknown == {"half", "nobody"}
    assert set(snapshot(redis)["low:workers"]) == {WORKER}


def test_it_tells_which_of_their_jobs_are_to_stop(redis, broker):
    others = claimed_job(broker, "others", worker="other")
    jobs = claimed_jobs(broker, *(new_job(name) for name in "abc"))
    for job, how in ((jobs[0], "ask"), (jobs[2], "terminate"), (others, "ask")):
        redis.hset(broker.keys.of(QUEUE).cancel_requests, job.id, f"{how} 1000 10 {{}}")
    redis.hset(broker.keys.of(QUEUE).cancel_requests, "nobodys", "ask 1000 10 {}")

    ((_, _, asked, *_),) = renewed(broker, [QUEUE], [WORKER, "unknown"])

    wishes = {(asked[i], asked[i + 1].decode(), asked[i + 2]) for i in range(0, len(asked), 3)}
    assert wishes == {(b"w1", jobs[0].id, b"ask"), (b"w1", jobs[2].id, b"terminate")}


def test_of_more_jobs_than_one_command_takes_it_tells_too(redis, broker, keys):
    broker.sign_on([QUEUE], WORKER)
    ids = [f"job-{number}" for number in range(9000)]
    redis.hset(keys.running(WORKER), mapping=dict.fromkeys(ids, "1 1"))
    redis.hset(keys.cancel_requests, mapping=dict.fromkeys(ids[::3], "ask 1000 10 {}"))

    ((_, _, asked, *_),) = renewed(broker, [QUEUE], [WORKER], tends="")

    assert {job_id.decode() for job_id in asked[1::3]} == set(ids[::3])


def test_one_call_renews_in_many_queues(broker):
    queues = [f"q{number}" for number in range(RENEWED_AT_ONCE + 1)]
    broker.sign_on(queues[-2:], WORKER)

    first, second = broker.redis.execute(broker.renew_commands(queues, [WORKER]), resend=True)

    assert [unknown for _, unknown, *_ in first] == [[WORKER.encode()]] * (RENEWED_AT_ONCE - 1) + [[]]
    assert [unknown for _, unknown, *_ in second] == [[]]


def test_the_second_name_of_a_call_in_a_cluster_is_no_queue(broker):
    broker.sign_on([QUEUE], WORKER)
    ((name, sha, _, tag, *arguments),) = broker.renew_commands([QUEUE], [WORKER])

    ((_, unknown, *_),) = broker.redis.execute_one((name, sha, 2, tag, b"{rtq}::", *arguments))

    assert unknown == []


# Who tends a queue


@pytest.fixture
def now(redis, broker):
    """There is a worker, and time stands still, in ms: ahead of a clock that was put back."""
    broker.sign_on([QUEUE], WORKER)
    now = server_ms(redis) + 10_000
    stand_still(redis, broker, now)
    return now


def stand_still(redis, broker, now):
    """Until the next call, which lets time go on slowly."""
    redis.hset(broker.keys.of(QUEUE).clock, mapping={"high": now, "anchor": f"{10 * now} {now + DAY_MS}"})


def let_tend(redis, broker, at, first_end_in=DAY_MS):
    """A supervisor looked after the queue then. The first lease that it saw ended so many ms later."""
    redis.hset(broker.keys.of(QUEUE).clock, mapping={"tended": at, "first_end": at + first_end_in})


def entry(broker, **options):
    """What renew says of the queue: whether it was tended, whether something is due, where to repair."""
    ((left, _, _, has_due, start),) = renewed(broker, [QUEUE], **options)
    return left >= 0, has_due, start


@pytest.mark.parametrize(
    ("ms_ago", "first_end", "is_tended"),
    [(999, DAY_MS, False), (1000, DAY_MS, True), (-1, DAY_MS, True), (0, 1, False), (0, 0, True)],
)
def test_a_queue_is_tended_when_nobody_has_for_long_or_a_lease_ends(redis, broker, now, ms_ago, first_end, is_tended):
    let_tend(redis, broker, now - ms_ago, ms_ago + first_end)
    before = snapshot(redis)["clock"]

    assert entry(broker, pause_ms=1000) == (is_tended, 0, -1)

    after = snapshot(redis)["clock"]
    assert (after == before) is not is_tended
    assert not is_tended or after["tended"] == after["contact"] == after["promoted"] == str(now)


def test_a_lease_is_renewed_whoever_tends(redis, broker, now):
    let_tend(redis, broker, now)
    redis.zadd(broker.keys.of(QUEUE).workers, {WORKER: 1, "other": 2})

    for names, unknown in (([WORKER], set()), ([WORKER, "nobody"], {"nobody"}), ([WORKER], set())):
        stand_still(redis, broker, now)
        assert renew(broker, [QUEUE], names, pause_ms=1000) == (None, unknown)

    assert snapshot(redis)["workers"] == {WORKER: now + LEASE_SECONDS * 1000, "other": 2}


def test_the_end_of_the_first_lease_is_noted(redis, broker, now):
    redis.zadd(broker.keys.of(QUEUE).workers, {WORKER: now + 4711, "other": now + 4712})
    entry(broker)
    assert snapshot(redis)["clock"]["first_end"] == str(now + 4711)

    redis.delete(broker.keys.of(QUEUE).workers)
    stand_still(redis, broker, now)
    entry(broker)
    assert snapshot(redis)["clock"]["first_end"] == str(now + int(LEASE_SECONDS) * 1000)


def test_who_does_not_promote_tends_besides_those_who_do(redis, broker, now):
    let_fall_due(broker, scheduled_job(broker))
    let_tend(redis, broker, now)

    assert entry(broker, pause_ms=1000, tends="checked") == (True, 0, 0)
    assert "promoted" not in snapshot(redis)["clock"]
    assert entry(broker, pause_ms=1000, tends="checked")[0] is False
    assert entry(broker, tends="")[0] is False


@pytest.mark.parametrize("seed", ["rate_times", "next_starts", "paused"])
def test_what_may_go_on_is_something_to_promote(redis, broker, seed):
    key = getattr(broker.keys.of(QUEUE), seed)
    _ = redis.hset(key, "queue", "1") if seed == "paused" else redis.zadd(key, {"x": 1})

    assert entry(broker)[1] == 1


@pytest.mark.parametrize(("key", "in_ms", "has_due"), [("scheduled", 0, 1), ("scheduled_by_client", 0, 1),
                                                       ("scheduled", 1, 0), ("scheduled_by_client", 1, 0)])  # fmt: skip
def test_what_is_due_is_to_be_promoted(redis, broker, now, key, in_ms, has_due):
    redis.zadd(getattr(broker.keys.of(QUEUE), key), {"x": now + in_ms})

    assert entry(broker)[1] == has_due


def test_while_jobs_wait_lanes_are_repaired_from_where_the_last_call_ended(redis, broker):
    queued_job(broker)
    assert entry(broker)[2] == 0

    redis.hset(broker.keys.of(QUEUE).clock, "repaired", 300)
    assert entry(broker)[2] == 300


@pytest.mark.parametrize("seed", ["runners", "running_counts", "blocked"])
def test_what_a_torn_log_may_have_left_is_repaired(redis, broker, seed):
    redis.hset(getattr(broker.keys.of(QUEUE), seed), "x", "1")

    assert entry(broker)[2] == 0


def test_a_worker_without_a_lease_is_to_be_repaired(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    redis.zrem(broker.keys.of(QUEUE).workers, WORKER)

    assert entry(broker)[2] == 0


def test_many_workers_are_always_to_be_repaired(broker):
    for number in range(100):
        broker.sign_on([QUEUE], f"w-{number}")
    assert entry(broker)[2] == -1

    broker.sign_on([QUEUE], "w-last")
    assert entry(broker)[2] == 0


@pytest.mark.parametrize(
    ("counted_ago", "has_job", "fields", "has_limits", "start"),
    [
        (0, True, {}, False, -1),
        (LEASE_SECONDS * 1000 - 1, True, {}, False, -1),
        (LEASE_SECONDS * 1000, True, {}, False, 0),
        (-1, True, {}, False, 0),
        (0, True, {}, True, 0),
        (LEASE_SECONDS * 1000, False, {}, True, -1),
        (LEASE_SECONDS * 1000, False, {"lost": "1 1"}, False, 0),
        (0, False, {"lost": "1 1"}, False, -1),
    ],
)
def test_jobs_that_do_not_wait_are_counted_once_in_a_lease(
    redis, broker, keys, now, counted_ago, has_job, fields, has_limits, start
):
    redis.hset(keys.clock, mapping={"counted": now - counted_ago, **fields})
    _ = has_job and redis.hset(keys.jobs, "x", "")
    _ = has_limits and redis.hset(keys.limits, "queue", "max_running=1")

    assert entry(broker)[2] == start


def test_a_heartbeat_leaves_a_queue_alone_for_a_fifteenth_of_a_lease(broker):
    (command,) = broker.renew_commands([QUEUE], [WORKER], tends="tended")

    assert command[-3:] == ("tended", LEASE_SECONDS * 1000 // TENDED_IN_A_LEASE, WORKER)
