"""Stories of jobs of which no second like them may live."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.messages import UniqueJob
from tests.broker.model.parallel_run import Twins
from tests.broker.model.scenarios import DONE, ERROR, KEEP_MS, new_job, run

LIMIT_MS = 50_000


def send_unique(
    twins: Twins,
    *names: str,
    digest: str = "d1",
    until: str = "done",
    on_conflict: str = "return",
    times: int = 1,
    **options: Any,
) -> list[str]:
    """Enqueue jobs that are alike in one call; their ids."""
    jobs = [UniqueJob(*new_job(twins, name, **options), digest, until, LIMIT_MS, on_conflict) for name in names]
    for _ in range(times):
        twins.enqueue_unique("mail", jobs)
    return [job.id for job in jobs]


def of_those_alike_one_lives(twins: Twins) -> None:
    first, _ = send_unique(twins, "a", "b", client="x", times=2)
    other, *_ = send_unique(twins, "c", "d", digest="d2", due="+3000", at_front="1")
    send_unique(twins, "e", "f", digest="", at_front="1")  # not unique after all
    send_unique(twins, "a", digest="d3")  # its id is known
    twins.claim("w0", ("mail",), 5)
    send_unique(twins, "g")
    run(twins, "retry", [first], 1000, 1, ERROR)
    send_unique(twins, "h")
    twins.advance(1000)
    twins.promote("mail")
    twins.claim("w0", ("mail",))
    run(twins, "ack", [first], KEEP_MS, DONE, worker="w1")  # not its own
    send_unique(twins, "i")
    run(twins, "ack", [first], KEEP_MS, DONE)
    second, _ = send_unique(twins, "j", "k")
    twins.cancel("mail", second)
    twins.enqueue_unique("mail", [UniqueJob(*new_job(twins, "j"), "d1", "done", LIMIT_MS, "return")])  # it is a ghost
    send_unique(twins, "l")
    twins.cancel("mail", other)
    send_unique(twins, "m", digest="d2")
    for _ in range(4):
        twins.purge("mail")
    send_unique(twins, "n", "o", digest="d2", max_crashes=0)
    send_unique(twins, "p")
    twins.claim("w1", ("mail",), 5)
    twins.reclaim_child("mail", "w1", [job for job in twins.models["mail"].running["w1"]])
    send_unique(twins, "q", digest="d2")


def who_waits_for_another_is_not_run_before_it(twins: Twins) -> None:
    (first,) = send_unique(twins, "a")
    twins.claim("w0", ("mail",))
    (successor,) = send_unique(twins, "b", on_conflict="rerun")
    twins.run_now("mail", successor)
    run(twins, "retry", [first], 1000, 1, ERROR)
    for job_id in (successor, first):
        twins.run_now("mail", job_id)
    twins.claim("w0", ("mail",))
    twins.let_limit_pass("mail", "d1")
    twins.run_now("mail", successor)
    twins.claim("w1", ("mail",))


def the_dead_keep_nobody_out(twins: Twins) -> None:
    (first,) = send_unique(twins, "a")
    twins.claim("w0", ("mail",))
    run(twins, "bury", [first], 1, ERROR)
    (second,) = send_unique(twins, "b")
    twins.requeue("mail", [first])  # another one lives
    twins.claim("w0", ("mail",))
    run(twins, "bury", [second], 1, ERROR)
    twins.requeue("mail", [first, second])  # the first of them only
    send_unique(twins, "c")
    twins.claim("w0", ("mail",))
    run(twins, "expire", [first], KEEP_MS, DONE)
    twins.requeue("mail", [second])
    send_unique(twins, "d")
    twins.claim("w0", ("mail",))
    run(twins, "bury", [second], 1, ERROR)
    twins.discard("mail", [second])
    (third,) = send_unique(twins, "e")
    twins.let_limit_pass("mail", "d1")
    send_unique(twins, "f")  # beside it
    twins.claim("w0", ("mail",), 2)
    run(twins, "ack", [third], KEEP_MS, DONE)  # and keeps its own
    send_unique(twins, "g")


def until_it_starts(twins: Twins) -> None:
    first, _ = send_unique(twins, "a", "b", until="start")
    twins.claim("w0", ("mail",))
    second, _ = send_unique(twins, "c", "d", until="start")
    run(twins, "ack", [first], KEEP_MS, DONE)
    send_unique(twins, "e", until="start")
    twins.claim("w0", ("mail",))
    run(twins, "release", [second])  # it has not started after all
    send_unique(twins, "f", until="start")
    twins.claim("w0", ("mail",))
    run(twins, "retry", [second], 9000, 1, ERROR)
    (third,) = send_unique(twins, "g", until="start", max_crashes=3)
    twins.claim("w0", ("mail",))
    twins.reclaim_child("mail", "w0", [third])
    send_unique(twins, "h", until="start")


def a_change_comes_while_it_runs(twins: Twins) -> None:
    (first,) = send_unique(twins, "a")
    send_unique(twins, "b", on_conflict="rerun")  # it waits: nothing to do twice
    twins.claim("w0", ("mail",))
    (successor,) = send_unique(twins, "c", on_conflict="rerun", body="[1]", times=2)
    send_unique(twins, "d", "e", on_conflict="rerun", body="[2]", times=2)
    send_unique(twins, "f")
    run(twins, "ack", [first], KEEP_MS, DONE, times=2)
    send_unique(twins, "g")
    twins.promote("mail")
    twins.claim("w0", ("mail",))
    (third,) = send_unique(twins, "h", on_conflict="rerun", due="+5000")
    run(twins, "retry", [successor], 1000, 1, ERROR)
    send_unique(twins, "i", on_conflict="rerun", body="[3]", due="+6000")
    twins.advance(1000)
    twins.promote("mail")
    twins.claim("w0", ("mail",))
    run(twins, "bury", [successor], 1, ERROR)
    twins.requeue("mail", [successor])
    twins.advance(5000)
    twins.promote("mail")
    twins.cancel("mail", third)
    twins.requeue("mail", [successor])


def heirs_come_too_late(twins: Twins) -> None:
    (first,) = send_unique(twins, "a", max_crashes=0)
    twins.claim("w0", ("mail",))
    (successor,) = send_unique(twins, "b", on_conflict="rerun")
    twins.cancel("mail", successor)
    (successor,) = send_unique(twins, "c", on_conflict="rerun")
    twins.reclaim_child("mail", "w0", [first])
    twins.promote("mail")
    twins.claim("w1", ("mail",))
    (late,) = send_unique(twins, "d", on_conflict="rerun")
    twins.advance(LIMIT_MS)
    twins.promote("mail")  # it has waited for long enough
    twins.let_limit_pass("mail", "d1")
    run(twins, "ack", [successor], KEEP_MS, DONE, worker="w1")
    twins.claim("w1", ("mail",))
    run(twins, "retry", [late], 1000, 1, ERROR, worker="w1")
    twins.sign_on("w0")
    (first,) = send_unique(twins, "e", digest="d2")
    twins.claim("w0", ("mail",))
    send_unique(twins, "f", digest="d2", on_conflict="rerun")
    twins.let_limit_pass("mail", "d2")
    (other,) = send_unique(twins, "g", digest="d2")
    run(twins, "ack", [first], KEEP_MS, DONE)  # the successor runs, and the other keeps its own
    twins.promote("mail")
    twins.claim("w0", ("mail",), 2)
    send_unique(twins, "h", digest="d2", on_conflict="rerun")
    run(twins, "retry", [other], 60_000, 1, ERROR)
    twins.purge("mail")
    send_unique(twins, "i", digest="d2")


def an_heir_has_run_before_its_time(twins: Twins) -> None:
    (first,) = send_unique(twins, "a")
    twins.claim("w1", ("mail",))
    (successor,) = send_unique(twins, "b", on_conflict="rerun")
    twins.advance(LIMIT_MS)
    twins.promote("mail")
    twins.claim("w0", ("mail",))
    run(twins, "retry", [successor], 9000, 1, ERROR)
    run(twins, "ack", [first], KEEP_MS, DONE, worker="w1")


def the_last_time_counts(twins: Twins) -> None:
    (first,) = send_unique(twins, "a", due="+3000")
    send_unique(twins, "b", on_conflict="replace", due="+4000", body="[1]", client="x", priority=5, times=2)
    twins.advance(3000)
    twins.promote("mail")
    send_unique(twins, "c", on_conflict="replace", due="+1", expires="+9000")
    twins.advance(1)
    twins.promote("mail")
    twins.take_token("mail", "work_signal")
    send_unique(twins, "d", on_conflict="replace", due="+4000", client="y", body="[2]")  # it keeps its place
    twins.claim("w0", ("mail",))
    send_unique(twins, "e", on_conflict="replace", body="[3]")  # it runs
    run(twins, "retry", [first], 9000, 1, ERROR)
    send_unique(twins, "f", on_conflict="replace", due="+5000", body="[4]")
    send_unique(twins, "g", on_conflict="replace", body="[5]", client="y")
    twins.claim("w0", ("mail",))
    run(twins, "ack", [first], KEEP_MS, DONE)


def the_last_client_counts(twins: Twins) -> None:
    """Of a job that is replaced, and of one that waits for the end of another."""
    send_unique(twins, "a", due="+3000", client="x")
    for name, client, due in (("b", "y", "+4000"), ("c", "y", "+5000"), ("d", "z", "+2000")):
        send_unique(twins, name, on_conflict="replace", due=due, client=client)
    twins.advance(1000)
    send_unique(twins, "e", on_conflict="replace", client="x")
    twins.claim("w0", ("mail",))
    for name, client in (("f", "x"), ("g", "y"), ("h", "y")):
        send_unique(twins, name, on_conflict="rerun", client=client)


UNIQUE_STORIES = (
    of_those_alike_one_lives,
    the_dead_keep_nobody_out,
    until_it_starts,
    a_change_comes_while_it_runs,
    heirs_come_too_late,
    an_heir_has_run_before_its_time,
    who_waits_for_another_is_not_run_before_it,
    the_last_time_counts,
    the_last_client_counts,
)
