"""Short, fixed sequences of verbs, run in Redis and in the model: cases that random verbs find late."""

from typing import Any

from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.scripts import SCRIPTS
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.state import DEAD_MS, LEASE_MS, RESULT_MS

ERROR = '{"error":"it broke"}'
PROGRESS = '{"done":1,"total":null,"text":""}'
DONE = '{"state":"succeeded"}'
KEEP_MS = 100_000
HOUR_MS = 3_600_000


def send(parallel: ParallelRun, *names: str, queue: str = "mail", claimed: int = 0, **options: Any) -> list[str]:
    """Enqueue jobs in one call, and claim so many; their ids."""
    jobs = [new_job(parallel, name, **options) for name in names]
    parallel.enqueue(queue, jobs)
    if claimed:
        parallel.claim("w0", (queue,), claimed)
    return [job.id for job in jobs]


def new_job(parallel: ParallelRun, name: str, **options: Any) -> NewJob:
    """A job whose id tells when it was made, and its name."""
    plain = {"priority": 0, "max_crashes": 1, "client": "", "due": "", "expires": "", "at_front": "", "body": "{}"}
    return NewJob(id=f"{parallel.clock.now:012x}-{name}", **{**plain, **options})


def unique_job(
    parallel: ParallelRun, name: str, digest: str = "d1", conflict: str = "return", until: str = "done", **options: Any
) -> NewJob:
    held = {"digest": digest, "until": until, "limit_ms": RESULT_MS, "on_conflict": conflict}
    return new_job(parallel, name, **{**held, **options})


def run(
    parallel: ParallelRun, verb: str, job_ids: list[str], *details: Any, worker: str = "w0", times: int = 1
) -> None:
    """Settle runs of a worker in the queue mail."""
    for _ in range(times):
        parallel.fetch(worker, {"mail": {verb: [(job_id, *details) for job_id in job_ids]}})


def clients_take_turns(parallel: ParallelRun) -> None:
    send(parallel, *"abcdefg", client="flood")
    send(parallel, "h", client="one")
    send(parallel, *"ijk", client="three")
    send(parallel, "urgent", client="one", priority=5)
    send(parallel, "unimportant", client="flood", priority=-5)
    send(parallel, "first", client="flood", at_front="1")
    send(parallel, "other", queue="bulk")
    for wanted in (1, 3, 4, 2, 5):
        parallel.claim("w0", ("bulk", "mail"), wanted)


def work_is_settled(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcdefghijkl", client="acme", claimed=12)
    run(parallel, "ack", ids[:2], KEEP_MS, DONE, worker="w1")  # not its own
    run(parallel, "expire", ids[:2], KEEP_MS, DONE, worker="w1")
    run(parallel, "bury", ids[:2], 1, ERROR, worker="w1")
    run(parallel, "retry", ids[:2], 1000, 1, ERROR, worker="w1")
    run(parallel, "release", ids[:2], worker="w1")
    run(parallel, "ack", ids[:1], KEEP_MS, DONE, times=2)
    run(parallel, "ack", ids[1:2], 1000, "")
    run(parallel, "expire", ids[2:3], RESULT_MS, '{"state":"expired"}', times=2)
    parallel.enqueue("mail", [new_job(parallel, "a"), new_job(parallel, "new")])  # the first is finished
    parallel.trim_after(1000)
    run(parallel, "ack", ids[3:9], KEEP_MS, DONE)  # more than is kept
    run(parallel, "release", ids[9:], times=2)
    parallel.trim_after(KEEP_MS, 1)
    parallel.trim("mail")


def known_jobs_are_taken_in_once(parallel: ParallelRun) -> None:
    for others in ((), ("x", "y"), ("z",)):  # alone, and among others
        finished, live = new_job(parallel, "finished"), new_job(parallel, "live")
        cancelled = new_job(parallel, "cancelled", client="acme")
        parallel.enqueue("mail", [finished])
        parallel.claim("w0", ("mail",))
        run(parallel, "ack", [finished.id], 4 * RESULT_MS, DONE)
        send(parallel, *"ab", client="acme")
        parallel.enqueue("mail", [live])
        parallel.enqueue("mail", [cancelled])
        parallel.cancel("mail", cancelled.id)
        for _ in range(3):  # the ids of finished jobs are forgotten
            parallel.trim_after(RESULT_MS // 2)  # it is named in its lane, and nowhere else
        for job in (finished, live, cancelled):
            parallel.enqueue("mail", [job, *(new_job(parallel, name) for name in others)])
        front = new_job(parallel, "front", client="acme", at_front="1")
        parallel.enqueue(
            "mail", [front, *(new_job(parallel, f"{name}2", client="acme", at_front="1") for name in others)]
        )
        parallel.claim("w0", ("mail",), 20)
        parallel.claim("w1", ("mail",))
    parallel.advance(4 * RESULT_MS)


def failures_are_counted(parallel: ParallelRun) -> None:
    (job_id,) = send(parallel, "a", max_crashes=3, claimed=1)
    for delay, counted in ((2000, 1), (1000, 0), (0, 1), (3000, 1), (1, 1), (1000, 1)):
        run(parallel, "retry", [job_id], delay, counted, ERROR, times=2)
        parallel.find("mail", job_id)
        parallel.promote_after(max(0, delay - 1))  # too early
        parallel.promote_after(1)
        parallel.claim("w0", ("mail",))
    run(parallel, "bury", [job_id], 1, ERROR, times=2)
    parallel.requeue("mail", [job_id])
    parallel.requeue("mail", [job_id])
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", [job_id], 0, ERROR)
    parallel.discard("mail", [job_id])
    parallel.discard("mail", [job_id])


def nobody_knows_a_task(parallel: ParallelRun) -> None:
    """The first failure of the kind is kept: it tells since when. Others in between are told of."""
    (job_id,) = send(parallel, "a")
    for kind, counted in (("x.Unknown", 0), ("x.Unknown", 0), ("x.Other", 0), ("x.Other", 1), ("x.Unknown", 0)):
        line = f'{{"at":{parallel.clock.now},"error_class":"{kind}","error":"not \\"error_class\\":\\"x.Other\\""}}'
        parallel.claim("w0", ("mail",))
        run(parallel, "retry", [job_id], 0, counted, line)
        parallel.promote("mail")
        parallel.advance(1000)
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", [job_id], 0, line)


def jobs_wait_for_their_time(parallel: ParallelRun) -> None:
    send(parallel, "late", due="+3000", expires="+1000")
    parallel.accidents.take_token("mail", "due_signal")
    (later,) = send(parallel, "later", due="+4000", expires="+1000")
    send(parallel, "soon", due="+1", client="acme")
    parallel.accidents.take_token("mail", "due_signal")
    send(parallel, "past", due=str(parallel.clock.now - 5000))
    parallel.enqueue("mail", [new_job(parallel, "skewed")._replace(id=f"{parallel.clock.now - 5000:012x}-s")])
    parallel.enqueue("mail", [new_job(parallel, "skewed")._replace(id=f"{parallel.clock.now - 1000:012x}-just")])
    parallel.enqueue("mail", [new_job(parallel, "named")._replace(id="monthly")])
    parallel.claim("w0", ("mail",), 2)
    run(parallel, "retry", ["monthly"], 1000, 1, ERROR, times=2)
    run(parallel, "retry", [f"{parallel.clock.now - 5000:012x}-s"], 0, 1, ERROR)
    parallel.promote("mail", 1)
    parallel.cancel("mail", later)
    parallel.promote_after(3000, 1)
    parallel.promote("mail")


def the_guilty_crash(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abc", client="acme", body='{"task":"shop.tasks.ship","args":[1]}', claimed=3)
    run(parallel, "retry", ids[2:], 0, 1, ERROR)
    parallel.promote("mail")
    parallel.reclaim_child("mail", "w0", ids[:1])
    parallel.reclaim_child("mail", "w0", ids[:1])
    run(parallel, "ack", ids[:1], KEEP_MS, DONE)  # too late
    parallel.claim("w1", ("mail",), 3, idle=0)  # it runs something else
    send(parallel, "other", client="second")
    parallel.claim("w1", ("mail",), 3)  # the suspect alone
    parallel.claim("w1", ("mail",), 3)
    parallel.reclaim_child("mail", "w1", ids)  # once too often
    parallel.claim("w1", ("mail",))  # unknown by now
    parallel.find("mail", ids[0])
    parallel.requeue("mail", ids)
    parallel.sign_on("w2")
    parallel.claim("w2", ("mail",), 3)


def a_suspect_waits_behind_others(parallel: ParallelRun) -> None:
    ids = send(parallel, "a", "b", client="x", claimed=1)
    parallel.reclaim_child("mail", "w0", ids[:1])
    send(parallel, "c", client="y", at_front="1")
    send(parallel, "d", priority=5)
    parallel.claim("w1", ("mail",), 5)
    parallel.claim("w1", ("mail",), 5)


def a_lease_lasts_to_the_end(parallel: ParallelRun) -> None:
    send(parallel, "a", claimed=1)
    parallel.advance(LEASE_MS // 2)
    parallel.renew(["w1"])
    parallel.advance(LEASE_MS // 2 - 1)
    parallel.reclaim("mail")
    parallel.advance(1)
    parallel.reclaim("mail")


def leases_run_out(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd", claimed=4)
    parallel.advance(LEASE_MS)
    parallel.reclaim("mail")  # nobody could renew: Redis was away
    run(parallel, "ack", ids[:1], KEEP_MS, DONE)  # late, and accepted
    for _ in range(2):
        parallel.advance(LEASE_MS // 2)
        parallel.renew(["w1"])
    parallel.reclaim("mail", 1)
    parallel.claim("w1", ("mail",))
    parallel.accidents.take_token("mail", "work_signal")
    parallel.reclaim("mail", 1)
    parallel.reclaim("mail")
    parallel.reclaim("mail")
    run(parallel, "retry", ids[1:], 0, 1, ERROR)  # too late
    parallel.renew(["w0", "w1"])
    parallel.claim("w0", ("mail", "bulk"))  # unknown
    for _ in range(3):
        parallel.claim("w1", ("mail",), 2)
    for _ in range(3):
        parallel.advance(LEASE_MS // 2)
        parallel.renew(["nobody"])
    parallel.reclaim("mail")
    parallel.find("mail", ids[1])


def outages_come_again_and_again(parallel: ParallelRun) -> None:
    """More often than a lease: whoever is dead stays so, and its jobs come back."""
    send(parallel, "a", claimed=1)
    for _ in range(6):
        parallel.renew(["w1"])
        parallel.advance(LEASE_MS // 3)
        parallel.renew(["w1"])
        parallel.reclaim("mail")
        parallel.advance(LEASE_MS)
        parallel.reclaim("mail")
    assert not parallel.models["mail"].running["w0"]


def dead_letters_are_trimmed(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcdef", claimed=6)
    for job_id in ids:
        run(parallel, "bury", [job_id], 1, ERROR)
        parallel.advance(1)
    parallel.trim("mail", 1)
    parallel.trim("mail")
    parallel.trim("mail")
    parallel.trim_after(DEAD_MS - 4)
    parallel.trim_after(10)


def a_log_was_torn(parallel: ParallelRun) -> None:
    first, second = send(parallel, "a", "b", client="x")
    send(parallel, "c", client="y")
    parallel.accidents.take_token("mail", "work_signal")
    parallel.accidents.lose_turn("mail", (0, "x"))
    parallel.accidents.take_token("mail", "work_signal")
    parallel.accidents.lose_band("mail", 0)
    parallel.accidents.claim_half("mail", "torn", first, [])
    parallel.accidents.claim_half("mail", "torn", second, [second])
    parallel.claim("w0", ("mail",), 5)


def a_log_was_torn_at_the_end_of_a_job(parallel: ParallelRun) -> None:
    (job_id,) = send(parallel, "a", claimed=1)
    run(parallel, "ack", [job_id], KEEP_MS, DONE)
    parallel.accidents.stop_half("mail", "torn", job_id)
    parallel.find("mail", job_id)


def fewer_outcomes_are_kept_than_before(parallel: ParallelRun) -> None:
    keys, model = parallel.broker.keys.of("mail"), parallel.models["mail"]
    old = {f"old-{number:04}": parallel.clock.now - 5000 + number for number in range(2010)}
    model.recent_results += old
    model.results.update((job_id, f"{ended} {RESULT_MS} {DONE}") for job_id, ended in old.items())
    parallel.redis.rpush(keys.recent_results, *old)
    parallel.redis.hset(keys.results, mapping=model.results)
    ids = send(parallel, "a", "b", claimed=2)
    for job_id in ids:
        run(parallel, "ack", [job_id], KEEP_MS, DONE)


def the_longer_of_two_waits_counts(parallel: ParallelRun) -> None:
    (job_id,) = send(parallel, "a")
    keys = parallel.broker.keys.of("mail")
    for wait_ms in (60_000, 1000):
        parallel.broker.redis.execute_one(SCRIPTS["register_waiter"].call(keys, (job_id, wait_ms)))
    assert parallel.redis.zscore(keys.waiters, job_id) == parallel.clock.now + 60_000
    parallel.redis.delete(keys.waiters)


def a_schedule_began_by_a_clock_that_was_ahead(parallel: ParallelRun) -> None:
    now, schedules = parallel.clock.now, parallel.broker.keys.of("mail").schedules
    for last_slot, began in ((now + 2 * HOUR_MS, now), (0, now + 2 * HOUR_MS)):
        parallel.redis.hset(schedules, "report", f"{last_slot} x d1 {began}")
        assert parallel.broker.schedules.begin("mail", "report", "d1", now)
    parallel.redis.delete(schedules)
