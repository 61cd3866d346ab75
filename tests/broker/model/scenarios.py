"""Short runs of the twins, told on purpose: what random verbs would come upon late."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.messages import NewJob
from django_rtq.broker.scripts import SCRIPTS
from tests.broker.model.parallel_run import DEAD_MS, LEASE_MS, RESULT_MS, Twins

ERROR = '{"error":"it broke"}'
PROGRESS = '{"done":1,"total":null,"text":""}'
DONE = '{"state":"succeeded"}'
KEEP_MS = 100_000
HOUR_MS = 3_600_000


def send(twins: Twins, *names: str, queue: str = "mail", **options: Any) -> list[str]:
    """Enqueue jobs in one call; their ids."""
    jobs = [new_job(twins, name, **options) for name in names]
    twins.enqueue(queue, jobs)
    return [job.id for job in jobs]


def new_job(twins: Twins, name: str, **options: Any) -> NewJob:
    """A job whose id tells when it was made, and its name."""
    plain = {"priority": 0, "max_crashes": 1, "client": "", "due": "", "expires": "", "at_front": "", "body": "{}"}
    return NewJob(id=f"{twins.clock.now:012x}-{name}", **{**plain, **options})


def run(twins: Twins, verb: str, job_ids: list[str], *details: Any, worker: str = "w0", times: int = 1) -> None:
    """Settle runs of a worker in the queue mail."""
    for _ in range(times):
        twins.fetch(worker, {"mail": {verb: [(job_id, *details) for job_id in job_ids]}})


def clients_take_turns(twins: Twins) -> None:
    send(twins, *"abcdefg", client="flood")
    send(twins, "h", client="one")
    send(twins, *"ijk", client="three")
    send(twins, "urgent", client="one", priority=5)
    send(twins, "unimportant", client="flood", priority=-5)
    send(twins, "first", client="flood", at_front="1")
    send(twins, "other", queue="bulk")
    for wanted in (1, 3, 4, 2, 5):
        twins.claim("w0", ("bulk", "mail"), wanted)


def work_is_settled(twins: Twins) -> None:
    ids = send(twins, *"abcdefghijkl", client="acme")
    twins.claim("w0", ("mail",), 12)
    run(twins, "ack", ids[:2], KEEP_MS, DONE, worker="w1")  # not its own
    run(twins, "expire", ids[:2], KEEP_MS, DONE, worker="w1")
    run(twins, "bury", ids[:2], 1, ERROR, worker="w1")
    run(twins, "retry", ids[:2], 1000, 1, ERROR, worker="w1")
    run(twins, "release", ids[:2], worker="w1")
    run(twins, "ack", ids[:1], KEEP_MS, DONE, times=2)
    run(twins, "ack", ids[1:2], 1000, "")
    run(twins, "expire", ids[2:3], RESULT_MS, '{"state":"expired"}', times=2)
    twins.enqueue("mail", [new_job(twins, "a"), new_job(twins, "new")])  # the first is finished
    twins.advance(1000)
    twins.trim("mail")
    run(twins, "ack", ids[3:9], KEEP_MS, DONE)  # more than is kept
    run(twins, "release", ids[9:], times=2)
    twins.advance(KEEP_MS)
    twins.trim("mail", 1)
    twins.trim("mail")


def known_jobs_are_taken_in_once(twins: Twins) -> None:
    for others in ((), ("x", "y"), ("z",)):  # alone, and among others
        finished, live = new_job(twins, "finished"), new_job(twins, "live")
        cancelled = new_job(twins, "cancelled", client="acme")
        twins.enqueue("mail", [finished])
        twins.claim("w0", ("mail",))
        run(twins, "ack", [finished.id], 4 * RESULT_MS, DONE)
        send(twins, *"ab", client="acme")
        twins.enqueue("mail", [live])
        twins.enqueue("mail", [cancelled])
        twins.cancel("mail", cancelled.id)
        twins.advance(RESULT_MS)
        twins.trim("mail")  # it is named in its lane, and nowhere else
        for job in (finished, live, cancelled):
            twins.enqueue("mail", [job, *(new_job(twins, name) for name in others)])
        front = new_job(twins, "front", client="acme", at_front="1")
        twins.enqueue("mail", [front, *(new_job(twins, f"{name}2", client="acme", at_front="1") for name in others)])
        twins.claim("w0", ("mail",), 20)
        twins.claim("w1", ("mail",))
    twins.advance(4 * RESULT_MS)


def failures_are_counted(twins: Twins) -> None:
    (job_id,) = send(twins, "a", max_crashes=3)
    twins.claim("w0", ("mail",))
    for delay, counted in ((2000, 1), (1000, 0), (0, 1), (3000, 1), (1, 1), (1000, 1)):
        run(twins, "retry", [job_id], delay, counted, ERROR, times=2)
        twins.find("mail", job_id)
        twins.advance(max(0, delay - 1))
        twins.promote("mail")  # too early
        twins.advance(1)
        twins.promote("mail")
        twins.claim("w0", ("mail",))
    run(twins, "bury", [job_id], 1, ERROR, times=2)
    twins.requeue("mail", [job_id])
    twins.requeue("mail", [job_id])
    twins.claim("w0", ("mail",))
    run(twins, "bury", [job_id], 0, ERROR)
    twins.discard("mail", [job_id])
    twins.discard("mail", [job_id])


def nobody_knows_a_task(twins: Twins) -> None:
    """The first failure of the kind is kept: it tells since when. Others in between are told of."""
    (job_id,) = send(twins, "a")
    for kind, counted in (("x.Unknown", 0), ("x.Unknown", 0), ("x.Other", 0), ("x.Other", 1), ("x.Unknown", 0)):
        line = f'{{"at":{twins.clock.now},"error_class":"{kind}","error":"not \\"error_class\\":\\"x.Other\\""}}'
        twins.claim("w0", ("mail",))
        run(twins, "retry", [job_id], 0, counted, line)
        twins.promote("mail")
        twins.advance(1000)
    twins.claim("w0", ("mail",))
    run(twins, "bury", [job_id], 0, line)


def jobs_wait_for_their_time(twins: Twins) -> None:
    send(twins, "late", due="+3000", expires="+1000")
    twins.take_token("mail", "due_signal")
    (later,) = send(twins, "later", due="+4000", expires="+1000")
    send(twins, "soon", due="+1", client="acme")
    twins.take_token("mail", "due_signal")
    send(twins, "past", due=str(twins.clock.now - 5000))
    twins.enqueue("mail", [new_job(twins, "skewed")._replace(id=f"{twins.clock.now - 5000:012x}-s")])
    twins.enqueue("mail", [new_job(twins, "named")._replace(id="monthly")])
    twins.claim("w0", ("mail",), 2)
    run(twins, "retry", ["monthly"], 1000, 1, ERROR, times=2)
    run(twins, "retry", [f"{twins.clock.now - 5000:012x}-s"], 0, 1, ERROR)
    twins.promote("mail", 1)
    twins.cancel("mail", later)
    twins.advance(3000)
    twins.promote("mail", 1)
    twins.promote("mail")


def the_guilty_crash(twins: Twins) -> None:
    ids = send(twins, *"abc", client="acme", body='{"task":"shop.tasks.ship","args":[1]}')
    twins.claim("w0", ("mail",), 3)
    run(twins, "retry", ids[2:], 0, 1, ERROR)
    twins.promote("mail")
    twins.reclaim_child("mail", "w0", ids[:1])
    twins.reclaim_child("mail", "w0", ids[:1])
    run(twins, "ack", ids[:1], KEEP_MS, DONE)  # too late
    twins.claim("w1", ("mail",), 3, idle=0)  # it runs something else
    send(twins, "other", client="second")
    twins.claim("w1", ("mail",), 3)  # the suspect alone
    twins.claim("w1", ("mail",), 3)
    twins.reclaim_child("mail", "w1", ids)  # once too often
    twins.claim("w1", ("mail",))  # unknown by now
    twins.find("mail", ids[0])
    twins.requeue("mail", ids)
    twins.sign_on("w2")
    twins.claim("w2", ("mail",), 3)


def a_suspect_waits_behind_others(twins: Twins) -> None:
    ids = send(twins, "a", "b", client="x")
    twins.claim("w0", ("mail",))
    twins.reclaim_child("mail", "w0", ids[:1])
    send(twins, "c", client="y", at_front="1")
    send(twins, "d", priority=5)
    twins.claim("w1", ("mail",), 5)
    twins.claim("w1", ("mail",), 5)


def a_suspect_is_before_nobody(twins: Twins) -> None:
    (suspect,) = send(twins, "a", client="x")
    twins.claim("w0", ("mail",))
    twins.reclaim_child("mail", "w0", [suspect])
    older = f"{twins.clock.now - 999:012x}-b"
    twins.enqueue("mail", [new_job(twins, "b", client="y")._replace(id=older)])
    twins.purge("mail")  # y is in the ring, and has no job
    twins.claim("w1", ("mail",), 5)


def a_lease_lasts_to_the_end(twins: Twins) -> None:
    send(twins, "a")
    twins.claim("w0", ("mail",))
    twins.advance(LEASE_MS // 2)
    twins.renew(["w1"])
    twins.advance(LEASE_MS // 2 - 1)
    twins.reclaim("mail")
    twins.advance(1)
    twins.reclaim("mail")


def leases_run_out(twins: Twins) -> None:
    ids = send(twins, *"abcd")
    twins.claim("w0", ("mail",), 4)
    twins.advance(LEASE_MS)
    twins.reclaim("mail")  # nobody could renew: Redis was away
    run(twins, "ack", ids[:1], KEEP_MS, DONE)  # late, and accepted
    for _ in range(2):
        twins.advance(LEASE_MS // 2)
        twins.renew(["w1"])
    twins.reclaim("mail", 1)
    twins.claim("w1", ("mail",))
    twins.take_token("mail", "work_signal")
    twins.reclaim("mail", 1)
    twins.reclaim("mail")
    twins.reclaim("mail")
    run(twins, "retry", ids[1:], 0, 1, ERROR)  # too late
    twins.renew(["w0", "w1"])
    twins.claim("w0", ("mail", "bulk"))  # unknown
    for _ in range(3):
        twins.claim("w1", ("mail",), 2)
    for _ in range(3):
        twins.advance(LEASE_MS // 2)
        twins.renew(["nobody"])
    twins.reclaim("mail")
    twins.find("mail", ids[1])


def outages_come_again_and_again(twins: Twins) -> None:
    """More often than a lease: whoever is dead stays so, and its jobs come back."""
    send(twins, "a")
    twins.claim("w0", ("mail",))
    for _ in range(6):
        twins.renew(["w1"])
        twins.advance(LEASE_MS // 3)
        twins.renew(["w1"])
        twins.reclaim("mail")
        twins.advance(LEASE_MS)
        twins.reclaim("mail")
    assert not twins.models["mail"].running["w0"]


def dead_letters_are_trimmed(twins: Twins) -> None:
    ids = send(twins, *"abcdef")
    twins.claim("w0", ("mail",), 6)
    for job_id in ids:
        run(twins, "bury", [job_id], 1, ERROR)
        twins.advance(1)
    twins.trim("mail", 1)
    twins.trim("mail")
    twins.trim("mail")
    twins.advance(DEAD_MS - 4)
    twins.trim("mail")
    twins.advance(10)
    twins.trim("mail")


def a_log_was_torn(twins: Twins) -> None:
    first, second = send(twins, "a", "b", client="x")
    send(twins, "c", client="y")
    twins.take_token("mail", "work_signal")
    twins.lose_turn("mail", (0, "x"))
    twins.take_token("mail", "work_signal")
    twins.lose_band("mail", 0)
    twins.claim_half("mail", "torn", first, [])
    twins.claim_half("mail", "torn", second, [second])
    twins.claim("w0", ("mail",), 5)


def a_log_was_torn_at_the_end_of_a_job(twins: Twins) -> None:
    (job_id,) = send(twins, "a")
    twins.claim("w0", ("mail",))
    run(twins, "ack", [job_id], KEEP_MS, DONE)
    twins.stop_half("mail", "torn", job_id)
    twins.find("mail", job_id)


def a_job_crashes_that_failed_before(twins: Twins) -> None:
    (job_id,) = send(twins, "a", max_crashes=3)
    twins.claim("w0", ("mail",))
    run(twins, "retry", [job_id], 0, 1, ERROR)
    twins.promote("mail")
    twins.claim("w0", ("mail",))
    twins.reclaim_child("mail", "w0", [job_id])


def fewer_outcomes_are_kept_than_before(twins: Twins) -> None:
    keys, model = twins.broker.keys.of("mail"), twins.models["mail"]
    old = {f"old-{number:04}": twins.clock.now - 5000 + number for number in range(2010)}
    model.result_times.update(old)
    model.finished.update({job_id: ended + RESULT_MS for job_id, ended in old.items()})
    model.results.update(dict.fromkeys(old, f"{RESULT_MS} {DONE}"))
    twins.redis.zadd(keys.result_times, old)
    twins.redis.zadd(keys.finished, model.finished)
    twins.redis.hset(keys.results, mapping=model.results)
    ids = send(twins, "a", "b")
    twins.claim("w0", ("mail",), 2)
    for job_id in ids:
        run(twins, "ack", [job_id], KEEP_MS, DONE)


def the_longer_of_two_waits_counts(twins: Twins) -> None:
    (job_id,) = send(twins, "a")
    keys = twins.broker.keys.of("mail")
    for wait_ms in (60_000, 1000):
        twins.broker.redis.execute_one(SCRIPTS["register_waiter"].call(keys, (job_id, wait_ms)))
    assert twins.redis.zscore(keys.waiters, job_id) == twins.clock.now + 60_000
    twins.redis.delete(keys.waiters)


def a_schedule_began_by_a_clock_that_was_ahead(twins: Twins) -> None:
    now, schedules = twins.clock.now, twins.broker.keys.of("mail").schedules
    for last_slot, began in ((now + 2 * HOUR_MS, now), (0, now + 2 * HOUR_MS)):
        twins.redis.hset(schedules, "report", f"{last_slot} x d1 {began}")
        assert twins.broker.schedules.begin("mail", "report", "d1", now)
    twins.redis.delete(schedules)


STORIES = (
    clients_take_turns,
    work_is_settled,
    known_jobs_are_taken_in_once,
    failures_are_counted,
    nobody_knows_a_task,
    jobs_wait_for_their_time,
    the_guilty_crash,
    a_suspect_waits_behind_others,
    a_suspect_is_before_nobody,
    a_lease_lasts_to_the_end,
    leases_run_out,
    outages_come_again_and_again,
    dead_letters_are_trimmed,
    a_log_was_torn,
    a_log_was_torn_at_the_end_of_a_job,
    a_job_crashes_that_failed_before,
    fewer_outcomes_are_kept_than_before,
    the_longer_of_two_waits_counts,
    a_schedule_began_by_a_clock_that_was_ahead,
)
