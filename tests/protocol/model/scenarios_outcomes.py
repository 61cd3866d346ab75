"""Scenarios: what is kept of finished jobs."""

from django_rtq.core.broker.scripts import SCRIPTS
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import DONE, KEEP_MS, new_job, run, send
from tests.protocol.model.state import RESULT_MS

TOMBSTONE_MS = 120_000


def outcomes_are_kept_for_their_time(parallel: ParallelRun) -> None:
    """Each for another time; what was sent again is known for two minutes."""
    ids = send(parallel, *"abcd", claimed=4)
    for job_id, keep_ms in zip(ids, (1000, TOMBSTONE_MS, TOMBSTONE_MS + 1, RESULT_MS), strict=True):
        run(parallel, "ack", [job_id], keep_ms, DONE)
    for ms in (1000, TOMBSTONE_MS - 1000, 1, 1, RESULT_MS - TOMBSTONE_MS - 2, 1):
        parallel.advance(ms)
        for job_id in ids:
            parallel.find("mail", job_id)
        parallel.trim("mail")


def counters_are_rolled_up(parallel: ParallelRun) -> None:
    """Those of the hours that are over, and of which no minute has expired."""
    present = parallel.clock.now // 3_600_000
    model, keys = parallel.models["mail"], parallel.broker.keys.of("mail")
    for minute in (60 * (present - back) + place for back in (0, 1, 2, 20, 46, 47, 48) for place in (0, 59)):
        counters = {"succeeded": minute % 1000 + 1, "failed": 2}
        model.stats[minute].update(counters)
        parallel.redis.hset(keys.stats + b"%d" % minute, mapping=counters)
        parallel.redis.expire(keys.stats + b"%d" % minute, 172_800)
    for most in (1, 40, 2, 4, 4):
        call = SCRIPTS["roll_up"].call(keys, (most,))
        parallel.same(parallel.broker.redis.execute_one(call), model.roll_up(most))


def outcomes_are_too_many(parallel: ParallelRun) -> None:
    """Some of those that go finished long ago, others lately."""
    old = send(parallel, *"ab", claimed=2)
    run(parallel, "ack", old, RESULT_MS, DONE)
    parallel.trim_after(TOMBSTONE_MS + 1)
    for name in "cdef":
        parallel.advance(1)
        send(parallel, name, claimed=1)
        (job_id,) = parallel.models["mail"].running["w0"]
        run(parallel, "ack", [job_id], KEEP_MS, DONE)
    ids = send(parallel, *"ghijk", claimed=5)
    parallel.advance(1)
    run(parallel, "ack", ids, RESULT_MS, DONE)
    parallel.trim_after(TOMBSTONE_MS - 1)
    (job_id,) = send(parallel, "last", claimed=1)
    run(parallel, "ack", [job_id], RESULT_MS, DONE)


def old_and_recent_outcomes_are_too_many(parallel: ParallelRun) -> None:
    """Some of those that go were moved by trim."""
    old = send(parallel, *"ab", claimed=2)
    run(parallel, "ack", old, RESULT_MS, DONE)
    parallel.trim_after(TOMBSTONE_MS)
    ids = send(parallel, *"cdefg", claimed=5)
    run(parallel, "ack", ids, RESULT_MS, DONE)


def outcomes_differ_in_one_call(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd", claimed=4)
    kept = [(RESULT_MS, DONE), (TOMBSTONE_MS + 1, DONE), (TOMBSTONE_MS, ""), (RESULT_MS, DONE)]
    entries = [(job_id, *rest) for job_id, rest in zip(ids, kept, strict=True)]
    parallel.fetch("w0", {"mail": {"ack": entries}})
    for job_id in ids:
        parallel.find("mail", job_id)


def outcomes_are_looked_at_step_by_step(parallel: ParallelRun) -> None:
    """Of many that finished at the same time some are to be kept for longer; one by a clock that was ahead."""
    keys, model = parallel.broker.keys.of("mail"), parallel.models["mail"]
    then = parallel.clock.now
    texts = {f"old-{number:04}": f"{then} {RESULT_MS if number % 3 else 1000} {DONE}" for number in range(150)}
    texts["old-0010"] = f"{then + TOMBSTONE_MS + 1000} 1000 {DONE}"
    model.recent_results += texts
    model.results.update(texts)
    parallel.redis.rpush(keys.recent_results, *texts)
    parallel.redis.hset(keys.results, mapping=texts)
    parallel.advance(TOMBSTONE_MS)
    for _ in range(3):
        parallel.trim("mail")


def an_outcome_cannot_be_read(parallel: ParallelRun) -> None:
    ids = send(parallel, *"ab", claimed=2)
    run(parallel, "ack", ids, RESULT_MS, DONE)
    for job_id in ids:
        parallel.models["mail"].results[job_id] = f"x{parallel.clock.now} {RESULT_MS} {{}}"
        parallel.redis.hset(parallel.broker.keys.of("mail").results, mapping=parallel.models["mail"].results)
    parallel.trim("mail")


def ids_are_known_until_the_end_of_the_next_period(parallel: ParallelRun) -> None:
    """Whether trim rotates them or a heartbeat; asked for one by one, and many at once."""
    for end_period in (lambda: parallel.trim("mail"), lambda: parallel.renew(["w0"])):
        end_period()
        jobs = [new_job(parallel, name) for name in "ab"]
        parallel.enqueue("mail", jobs)
        parallel.claim("w0", ("mail",), 2)
        parallel.fetch("w0", {"mail": {"ack": [(jobs[0].id, RESULT_MS, DONE), (jobs[1].id, TOMBSTONE_MS, "")]}})
        for ms in (TOMBSTONE_MS - 1, 1, TOMBSTONE_MS - 1):
            parallel.advance(ms)
            end_period()
            parallel.enqueue("mail", jobs)
            for job in jobs:
                parallel.enqueue("mail", [job])
                parallel.find("mail", job.id)
        parallel.advance(1)
        end_period()
        parallel.find("mail", jobs[1].id)
        parallel.run_now("mail", jobs[0].id)
        parallel.run_now("mail", jobs[1].id)
