"""Leases end later."""

from django_rtq.broker.broker import RENEWED_AT_ONCE
from django_rtq.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, WORKER, claimed_job, claimed_jobs, let_lapse, new_job
from tests.support.redis_server import LEASE_SECONDS
from tests.support.server_clock import server_ms
from tests.support.single_steps import renew
from tests.support.snapshots import changes, snapshot


def test_the_deadline_moves(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    let_lapse(broker, WORKER)
    before, began = snapshot(redis), server_ms(redis)

    earliest, unknown = renew(broker, [QUEUE], [WORKER])

    assert earliest == LEASE_SECONDS
    assert unknown == set()
    assert set(changes(before, snapshot(redis))) <= {"workers", "clock", "rtq:queues"}
    assert began <= snapshot(redis)["workers"][WORKER] - LEASE_SECONDS * 1000 <= server_ms(redis)


def test_it_says_whom_it_does_not_know_and_does_not_bring_them_back(redis, broker):
    broker.sign_on([QUEUE, "low"], WORKER)
    broker.sign_on([QUEUE], "half")

    _, unknown = renew(broker, [QUEUE, "low"], [WORKER, "half", "nobody"])

    assert unknown == {"half", "nobody"}
    assert set(snapshot(redis)["low:workers"]) == {WORKER}


def test_a_worker_that_was_given_up_stays_so(redis, broker):
    claimed_job(broker)
    let_lapse(broker, WORKER)
    broker.reclaim(QUEUE)

    assert renew(broker, [QUEUE], [WORKER])[1] == {WORKER}

    assert "workers" not in snapshot(redis)


def test_it_tells_when_the_first_lease_of_anybody_ends(redis, broker):
    began = server_ms(redis)
    for queue, worker in ((QUEUE, WORKER), ("low", "silent")):
        broker.sign_on([queue], worker)
    redis.zadd(broker.keys.of("low").workers, {"silent": began - 5000})

    assert renew(broker, [QUEUE, "low"], [])[0] == 0
    left = renew(broker, [QUEUE], [])[0]
    assert LEASE_SECONDS - (server_ms(redis) - began) / 1000 <= left <= LEASE_SECONDS


def test_where_nobody_works_there_is_no_deadline(redis, broker):
    assert renew(broker, [QUEUE], []) == (None, set())


def test_after_a_silence_of_half_a_lease_all_leases_end_later_and_nothing_is_reclaimed_for_half_a_lease(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    broker.sign_on([QUEUE], "dead")
    before = snapshot(redis)["workers"]["dead"]
    contact = server_ms(redis) - int(LEASE_SECONDS * 500) - 1
    redis.hset(broker.keys.of(QUEUE).clock, "contact", contact)

    renew(broker, [QUEUE], [WORKER])

    after = snapshot(redis)
    sweep = {name: int(ms) for name, ms in after["clock"].items() if name != "anchor"}
    assert sweep["hold"] - sweep["contact"] == LEASE_SECONDS * 500
    assert after["workers"]["dead"] - before == sweep["contact"] - contact > LEASE_SECONDS * 500


def test_a_shorter_silence_holds_nothing(redis, broker):
    broker.sign_on([QUEUE], WORKER)

    renew(broker, [QUEUE], [WORKER])

    assert "hold" not in snapshot(redis)["clock"]


def test_it_tells_which_of_their_jobs_are_to_stop(redis, broker):
    others = claimed_job(broker, "others", worker="other")
    jobs = claimed_jobs(broker, *(new_job(name) for name in "abc"))
    for job, how in ((jobs[0], "ask"), (jobs[2], "terminate"), (others, "ask")):
        redis.hset(broker.keys.of(QUEUE).cancel_requests, job.id, f"{how} 1000 10 {{}}")
    redis.hset(broker.keys.of(QUEUE).cancel_requests, "nobodys", "ask 1000 10 {}")

    ((_, _, asked, _),) = broker.redis.execute_one(
        SCRIPTS["renew"].call(broker.keys.of(QUEUE), (1000, WORKER, "unknown"))
    )

    wishes = {(asked[i], asked[i + 1].decode(), asked[i + 2]) for i in range(0, len(asked), 3)}
    assert wishes == {(b"w1", jobs[0].id, b"ask"), (b"w1", jobs[2].id, b"terminate")}


def test_of_more_jobs_than_one_command_takes_it_tells_too(redis, broker):
    keys = broker.keys.of(QUEUE)
    broker.sign_on([QUEUE], WORKER)
    ids = [f"job-{number}" for number in range(9000)]
    redis.hset(keys.running(WORKER), mapping=dict.fromkeys(ids, "1 1"))
    redis.hset(keys.cancel_requests, mapping=dict.fromkeys(ids[::3], "ask 1000 10 {}"))

    ((_, _, asked, _),) = broker.redis.execute_one(SCRIPTS["renew"].call(keys, (1000, WORKER)))

    assert {job_id.decode() for job_id in asked[1::3]} == set(ids[::3])


def test_a_clock_that_was_hours_ahead_is_believed_when_it_is_put_right(redis, broker):
    broker.sign_on([QUEUE], WORKER)
    began = server_ms(redis)
    redis.hset(broker.keys.of(QUEUE).clock, "high", began + 7_200_000)

    renew(broker, [QUEUE], [WORKER])

    assert began <= snapshot(redis)["workers"][WORKER] - LEASE_SECONDS * 1000 <= server_ms(redis)


def test_one_call_renews_in_many_queues_and_counts_their_workers(broker):
    queues = [f"q{number}" for number in range(RENEWED_AT_ONCE + 1)]
    broker.sign_on(queues[-2:], WORKER)
    broker.sign_on(queues[-1:], "other")

    first, second = broker.redis.execute(broker.renew_commands(queues, [WORKER]), resend=True)

    assert [unknown for _, unknown, _, _ in first] == [[WORKER.encode()]] * (RENEWED_AT_ONCE - 1) + [[]]
    assert [number for *_, number in first + second] == [0] * (RENEWED_AT_ONCE - 1) + [1, 2]
