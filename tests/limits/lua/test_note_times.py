"""How long jobs ran, noted before their outcomes where clients take turns by time."""

from django_rtq.core.broker.scripts import SCRIPTS
from tests.support.jobs import QUEUE, WORKER, claimed_job, let_lapse
from tests.support.mutant import OWN_CLOCK, mutated
from tests.support.snapshots import snapshot

SLOW = OWN_CLOCK._replace(new='{ redis.call("INCRBY", "clock", 1000) / 1000, 0 }')  # a second between two readings


def note(broker, *jobs, worker=WORKER):
    call = SCRIPTS["note_times"].call(broker.keys.of(QUEUE), jobs, worker=worker)
    assert broker.redis.execute_one(call) == []


def test_of_jobs_of_others_nothing_is_noted(redis, broker, rtq):
    rtq.queues[QUEUE].limit(fair_by="seconds")
    job = claimed_job(broker, client="x")
    before = snapshot(redis)

    note(broker, job.id, "12.5", worker="w2")
    note(broker, "nobody", "12.5")

    assert snapshot(redis) == before


def test_of_jobs_that_were_claimed_without_limits_nothing_is_noted(redis, broker):
    job = claimed_job(broker, client="x")
    before = snapshot(redis)

    note(broker, job.id, "12.5")

    assert snapshot(redis) == before


def test_a_job_that_is_reclaimed_ran_until_the_time_that_the_script_read_first(redis, broker, rtq):
    rtq.queues[QUEUE].limit(fair_by="seconds")
    now = redis.time()[0] * 1000
    redis.set("clock", now)
    redis.hset(broker.keys.of(QUEUE).clock, "high", now + 60_000)  # the server's clock was put back
    with mutated(OWN_CLOCK):
        claimed_job(broker, client="x", max_crashes=0)
        let_lapse(broker, WORKER)
    redis.set("clock", now - 1000)

    with mutated(SLOW):
        broker.reclaim(QUEUE)

    redis.delete("clock")
    assert redis.hget(broker.keys.of(QUEUE).job_times, "queue") == b"9.375"  # 10, and a sixteenth less: it took no time
