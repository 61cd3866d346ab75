"""Scenarios: unique jobs."""

from typing import Any

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import DONE, ERROR, KEEP_MS, run, unique_job

LIMIT_MS = 50_000


def send_unique(
    parallel: ParallelRun,
    *names: str,
    digest: str = "d1",
    until: str = "done",
    on_conflict: str = "return",
    times: int = 1,
    claimed: int = 0,
    **options: Any,
) -> list[str]:
    """Enqueue jobs that are alike, and claim so many; their ids."""
    jobs = [unique_job(parallel, name, digest, on_conflict, until, limit_ms=LIMIT_MS, **options) for name in names]
    for _ in range(times):
        parallel.enqueue("mail", jobs)
    if claimed:
        parallel.claim("w0", ("mail",), claimed)
    return [job.id for job in jobs]


def of_those_alike_one_lives(parallel: ParallelRun) -> None:
    first, _ = send_unique(parallel, "a", "b", client="x", times=2)
    other, *_ = send_unique(parallel, "c", "d", digest="d2", due="+3000", at_front="1")
    send_unique(parallel, "e", "f", digest="", at_front="1")  # not unique after all
    send_unique(parallel, "a", digest="d3")  # its id is known
    parallel.claim("w0", ("mail",), 5)
    send_unique(parallel, "g")
    run(parallel, "retry", [first], 1000, 1, ERROR)
    send_unique(parallel, "h")
    parallel.promote_after(1000)
    parallel.claim("w0", ("mail",))
    run(parallel, "ack", [first], KEEP_MS, DONE, worker="w1")  # not its own
    send_unique(parallel, "i")
    run(parallel, "ack", [first], KEEP_MS, DONE)
    second, _ = send_unique(parallel, "j", "k")
    parallel.cancel("mail", second)
    parallel.enqueue("mail", [unique_job(parallel, "j", limit_ms=LIMIT_MS)])  # it is a ghost
    send_unique(parallel, "l")
    parallel.cancel("mail", other)
    send_unique(parallel, "m", digest="d2")
    for _ in range(4):
        parallel.purge("mail")
    send_unique(parallel, "n", "o", digest="d2", max_crashes=0)
    send_unique(parallel, "p")
    parallel.claim("w1", ("mail",), 5)
    parallel.reclaim_child("mail", "w1", [job for job in parallel.models["mail"].running["w1"]])
    send_unique(parallel, "q", digest="d2")


def who_waits_for_another_is_not_run_before_it(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a", claimed=1)
    (successor,) = send_unique(parallel, "b", on_conflict="rerun")
    parallel.run_now("mail", successor)
    run(parallel, "retry", [first], 1000, 1, ERROR)
    for job_id in (successor, first):
        parallel.run_now("mail", job_id)
    parallel.claim("w0", ("mail",))
    parallel.accidents.let_limit_pass("mail", "d1")
    parallel.run_now("mail", successor)
    parallel.claim("w1", ("mail",))


def the_dead_keep_nobody_out(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a", claimed=1)
    run(parallel, "bury", [first], 1, ERROR)
    (second,) = send_unique(parallel, "b")
    parallel.requeue("mail", [first])  # another one lives
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", [second], 1, ERROR)
    parallel.requeue("mail", [first, second])  # the first of them only
    send_unique(parallel, "c", claimed=1)
    run(parallel, "expire", [first], KEEP_MS, DONE)
    parallel.requeue("mail", [second])
    send_unique(parallel, "d", claimed=1)
    run(parallel, "bury", [second], 1, ERROR)
    parallel.discard("mail", [second])
    (third,) = send_unique(parallel, "e")
    parallel.accidents.let_limit_pass("mail", "d1")
    send_unique(parallel, "f")  # beside it
    parallel.claim("w0", ("mail",), 2)
    run(parallel, "ack", [third], KEEP_MS, DONE)  # and keeps its own
    send_unique(parallel, "g")


def until_it_starts(parallel: ParallelRun) -> None:
    first, _ = send_unique(parallel, "a", "b", until="start", claimed=1)
    second, _ = send_unique(parallel, "c", "d", until="start")
    run(parallel, "ack", [first], KEEP_MS, DONE)
    send_unique(parallel, "e", until="start", claimed=1)
    run(parallel, "release", [second])  # it has not started after all
    send_unique(parallel, "f", until="start", claimed=1)
    run(parallel, "retry", [second], 9000, 1, ERROR)
    (third,) = send_unique(parallel, "g", until="start", max_crashes=3, claimed=1)
    parallel.reclaim_child("mail", "w0", [third])
    send_unique(parallel, "h", until="start")


def a_change_comes_while_it_runs(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a")
    send_unique(parallel, "b", on_conflict="rerun")  # it waits: nothing to do twice
    parallel.claim("w0", ("mail",))
    (successor,) = send_unique(parallel, "c", on_conflict="rerun", body="[1]", times=2)
    send_unique(parallel, "d", "e", on_conflict="rerun", body="[2]", times=2)
    send_unique(parallel, "f")
    run(parallel, "ack", [first], KEEP_MS, DONE, times=2)
    send_unique(parallel, "g")
    parallel.promote("mail")
    parallel.claim("w0", ("mail",))
    (third,) = send_unique(parallel, "h", on_conflict="rerun", due="+5000")
    run(parallel, "retry", [successor], 1000, 1, ERROR)
    send_unique(parallel, "i", on_conflict="rerun", body="[3]", due="+6000")
    parallel.promote_after(1000)
    parallel.claim("w0", ("mail",))
    run(parallel, "bury", [successor], 1, ERROR)
    parallel.requeue("mail", [successor])
    parallel.promote_after(5000)
    parallel.cancel("mail", third)
    parallel.requeue("mail", [successor])


def heirs_come_too_late(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a", max_crashes=0, claimed=1)
    (successor,) = send_unique(parallel, "b", on_conflict="rerun")
    parallel.cancel("mail", successor)
    (successor,) = send_unique(parallel, "c", on_conflict="rerun")
    parallel.reclaim_child("mail", "w0", [first])
    parallel.promote("mail")
    parallel.claim("w1", ("mail",))
    (late,) = send_unique(parallel, "d", on_conflict="rerun")
    parallel.promote_after(LIMIT_MS)  # it has waited for long enough
    parallel.accidents.let_limit_pass("mail", "d1")
    run(parallel, "ack", [successor], KEEP_MS, DONE, worker="w1")
    parallel.claim("w1", ("mail",))
    run(parallel, "retry", [late], 1000, 1, ERROR, worker="w1")
    parallel.sign_on("w0")
    (first,) = send_unique(parallel, "e", digest="d2", claimed=1)
    send_unique(parallel, "f", digest="d2", on_conflict="rerun")
    parallel.accidents.let_limit_pass("mail", "d2")
    (other,) = send_unique(parallel, "g", digest="d2")
    run(parallel, "ack", [first], KEEP_MS, DONE)  # the successor runs, and the other keeps its own
    parallel.promote("mail")
    parallel.claim("w0", ("mail",), 2)
    send_unique(parallel, "h", digest="d2", on_conflict="rerun")
    run(parallel, "retry", [other], 60_000, 1, ERROR)
    parallel.purge("mail")
    send_unique(parallel, "i", digest="d2")


def the_last_time_counts(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a", due="+3000")
    send_unique(parallel, "b", on_conflict="replace", due="+4000", body="[1]", client="x", priority=5, times=2)
    parallel.promote_after(3000)
    send_unique(parallel, "c", on_conflict="replace", due="+1", expires="+9000")
    parallel.promote_after(1)
    parallel.accidents.take_token("mail", "work_signal")
    send_unique(parallel, "d", on_conflict="replace", due="+4000", client="y", body="[2]")  # it keeps its place
    parallel.claim("w0", ("mail",))
    send_unique(parallel, "e", on_conflict="replace", body="[3]")  # it runs
    run(parallel, "retry", [first], 9000, 1, ERROR)
    send_unique(parallel, "f", on_conflict="replace", due="+5000", body="[4]")
    send_unique(parallel, "g", on_conflict="replace", body="[5]", client="y", claimed=1)
    run(parallel, "ack", [first], KEEP_MS, DONE)


def the_last_client_counts(parallel: ParallelRun) -> None:
    """Of a job that is replaced, and of one that waits for the end of another."""
    send_unique(parallel, "a", due="+3000", client="x")
    for name, client, due in (("b", "y", "+4000"), ("c", "y", "+5000"), ("d", "z", "+2000")):
        send_unique(parallel, name, on_conflict="replace", due=due, client=client)
    parallel.advance(1000)
    send_unique(parallel, "e", on_conflict="replace", client="x", claimed=1)
    for name, client in (("f", "x"), ("g", "y"), ("h", "y")):
        send_unique(parallel, name, on_conflict="rerun", client=client)
