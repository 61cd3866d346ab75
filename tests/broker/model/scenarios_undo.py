"""Scenarios: what people delete and put back."""

from __future__ import annotations

from tests.broker.model.log_calls import LINE, append_log
from tests.broker.model.parallel_run import ParallelRun
from tests.broker.model.scenarios import ERROR, run, send
from tests.broker.model.scenarios_unique import send_unique

TOKEN, OTHER = f"discard-{1:032x}", f"purge-{2:032x}"
CHARGE = '{"task":"charge"}'


def dead_letters_come_back(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abc", client="acme", max_crashes=0)
    parallel.claim("w0", ("mail",), 3)
    append_log(parallel, "mail", "w0", ids[0], "a-1", LINE, over_ms="")
    run(parallel, "bury", ids[:2], 1, ERROR)
    parallel.reclaim_child("mail", "w0", ids[2:])
    parallel.advance(1)
    parallel.undo.discard_for_now("mail", ids[:1], OTHER)
    parallel.undo.discard_for_now("mail", [*ids, "nobody"], TOKEN)
    parallel.undo.restore("mail", "nothing", "first")
    parallel.undo.restore("mail", TOKEN, "first", 1)
    parallel.undo.restore("mail", TOKEN, "first", 1)  # sent twice
    parallel.discard("mail", ids[2:])
    parallel.undo.restore("mail", TOKEN, "second")
    parallel.undo.restore("mail", TOKEN, "third")
    parallel.undo.restore("mail", OTHER, "fourth")
    parallel.undo.discard_for_now("mail", ids[1:2], OTHER)
    parallel.requeue("mail", ids[:1])
    parallel.claim("w0", ("mail",), 3)


def waiting_jobs_come_back(parallel: ParallelRun) -> None:
    retried, *ids = send(parallel, *"abcd", client="acme")
    parallel.claim("w0", ("mail",))
    run(parallel, "retry", [retried], 3000, 1, ERROR)
    (due,) = send(parallel, "e", client="acme", due="+2000")
    send(parallel, "f", client="other", due="+1000")
    send(parallel, "g", client="other", priority=5)
    parallel.cancel("mail", ids[1])
    for _ in range(6):
        parallel.undo.purge_for_now("mail", 2, None, TOKEN)
    parallel.claim("w1", ("mail",))
    parallel.advance(2500)
    later = send(parallel, "h", client="acme")
    parallel.accidents.take_token("mail", "due_signal")
    parallel.undo.restore("mail", TOKEN, "first", 3)
    parallel.undo.restore("mail", TOKEN, "second")
    parallel.find("mail", due)
    parallel.promote("mail")
    parallel.claim("w1", ("mail",), 9)
    parallel.find("mail", later[0])


def what_runs_by_itself_is_not_restored(parallel: ParallelRun) -> None:
    """The id is known: it was enqueued again meanwhile, and has finished."""
    (job_id,) = send(parallel, "a")
    parallel.undo.purge_for_now("mail", 1, None, TOKEN)
    send(parallel, "a")
    parallel.claim("w0", ("mail",))
    run(parallel, "ack", [job_id], 1000, "")
    parallel.undo.restore("mail", TOKEN, "first")
    parallel.claim("w0", ("mail",))


def what_is_there_again_stays_as_it_is(parallel: ParallelRun) -> None:
    send(parallel, "a", client="acme")
    parallel.undo.purge_for_now("mail", 1, None, TOKEN)
    send(parallel, "a", client="other")
    parallel.undo.restore("mail", TOKEN, "first")
    parallel.claim("w0", ("mail",), 2)


def unique_jobs_come_back(parallel: ParallelRun) -> None:
    send_unique(parallel, "a", client="x")
    send_unique(parallel, "b", digest="d2", due="+3000")
    for _ in range(2):
        parallel.undo.purge_for_now("mail", 9, None, TOKEN)
    send_unique(parallel, "c", client="x")
    parallel.undo.restore("mail", TOKEN, "first")
    send_unique(parallel, "d", digest="d2")
    parallel.undo.restore("mail", TOKEN, "second")
    parallel.claim("w0", ("mail",), 9)


def a_started_job_comes_back_beside_another(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a", until="start")
    parallel.claim("w0", ("mail",))
    run(parallel, "retry", [first], 3000, 1, ERROR)
    send_unique(parallel, "b", until="start")
    parallel.undo.purge_for_now("mail", 9, None, TOKEN)
    parallel.undo.restore("mail", TOKEN, "first")
    send_unique(parallel, "c", until="start")


def successors_come_back(parallel: ParallelRun) -> None:
    (first,) = send_unique(parallel, "a")
    (other,) = send_unique(parallel, "b", digest="d2")
    parallel.claim("w0", ("mail",), 2)
    send_unique(parallel, "c", on_conflict="rerun")
    send_unique(parallel, "d", digest="d2", on_conflict="rerun")
    parallel.undo.purge_for_now("mail", 9, None, TOKEN)
    run(parallel, "ack", [other], 1000, "")
    parallel.undo.restore("mail", TOKEN, "first")
    parallel.promote("mail")
    parallel.claim("w1", ("mail",), 2)
    run(parallel, "ack", [first], 1000, "")
    parallel.promote("mail")
    parallel.claim("w1", ("mail",), 2)


def what_a_pause_held_comes_back(parallel: ParallelRun) -> None:
    parallel.pause_task("mail", "charge")
    send(parallel, *"abc", client="acme", body=CHARGE)
    parallel.claim("w0", ("mail",), 2)
    parallel.advance(5)
    parallel.undo.purge_for_now("mail", 9, "acme", TOKEN)
    parallel.undo.restore("mail", TOKEN, "first", 2)
    parallel.resume_task("mail", "charge")
    parallel.undo.restore("mail", TOKEN, "second")
    parallel.claim("w0", ("mail",), 9)


def a_forgotten_queue_comes_back(parallel: ParallelRun) -> None:
    for worker in ("w0", "w1"):
        parallel.sign_off(worker)
    send(parallel, "a")
    parallel.undo.purge_for_now("mail", 9, None, TOKEN)
    parallel.forget("mail", discard=True)
    parallel.undo.restore("mail", TOKEN, "first")
    parallel.sign_on("w2")
    parallel.claim("w2", ("mail",))


def large_jobs_go_and_come_back_in_several_calls(parallel: ParallelRun) -> None:
    ids = [*send(parallel, *"ab", body=large(70_000)), *send(parallel, "c", body=large(250_000)), *send(parallel, "d")]
    parallel.claim("w0", ("mail",), 4)
    run(parallel, "bury", ids[:2], 1, large(90_000))
    run(parallel, "bury", ids[2:], 1, ERROR)
    for _ in range(5):
        parallel.undo.discard_for_now("mail", ids, TOKEN)
    for number in range(5):
        parallel.undo.restore("mail", TOKEN, f"call{number}")
    send(parallel, *"ab", body=large(70_000), client="x")
    send(parallel, "c", body=large(150_000), client="x")
    for _ in range(3):
        parallel.undo.purge_for_now("mail", 9, "x", OTHER)
    for number in range(3):
        parallel.undo.restore("mail", OTHER, f"call{number}")
    parallel.claim("w0", ("mail",), 9)


def large(size: int) -> str:
    return '{"text":"%s"}' % ("x" * size)


UNDO_SCENARIOS = (
    dead_letters_come_back,
    waiting_jobs_come_back,
    what_runs_by_itself_is_not_restored,
    what_is_there_again_stays_as_it_is,
    unique_jobs_come_back,
    a_started_job_comes_back_beside_another,
    successors_come_back,
    what_a_pause_held_comes_back,
    a_forgotten_queue_comes_back,
    large_jobs_go_and_come_back_in_several_calls,
)
