"""Stories of turns: of jobs that were cancelled, given back or have crashed, and of workers that are lost."""

from __future__ import annotations

from tests.broker.model.parallel_run import LEASE_MS, Twins
from tests.broker.model.scenarios import KEEP_MS, run, send


def cancelled_jobs_cost_no_turn(twins: Twins) -> None:
    x = send(twins, *"ab", client="x")
    twins.advance(1)
    x += send(twins, *"cdef", client="x")
    y = send(twins, *"ghi", client="y")
    for job_id in (x[0], x[1], x[3], y[1]):
        twins.cancel("mail", job_id)
    twins.claim("w0", ("mail",))
    twins.claim("w0", ("mail",), 3)
    for job_id in send(twins, "j", client="z") + send(twins, "k", client="z", priority=-5):
        twins.cancel("mail", job_id)
    twins.claim("w0", ("mail", "bulk"), 5)


def behind_a_suspect_a_lane_begins_with_a_cancelled_job(twins: Twins) -> None:
    (suspect,) = send(twins, "a", client="x")
    twins.claim("w0", ("mail",))
    twins.reclaim_child("mail", "w0", [suspect])
    (cancelled,) = send(twins, "b", client="y")
    twins.advance(1)
    send(twins, "c", client="y")
    twins.cancel("mail", cancelled)
    twins.claim("w1", ("mail",), 2, idle=0)


def who_was_not_run_is_next(twins: Twins) -> None:
    x = send(twins, "a", "b", client="x")
    y = send(twins, "c", "d", client="y")
    z = send(twins, "e", client="z", priority=5)
    twins.claim("w0", ("mail",), 4)
    send(twins, "f", client="new")
    run(twins, "ack", x[:1], KEEP_MS, "")
    run(twins, "release", [z[0], y[0], x[1]])
    twins.claim("w1", ("mail",), 2)
    twins.reclaim_child("mail", "w1", y[:1])
    twins.sign_on("w2")
    for _ in range(5):
        twins.claim("w2", ("mail",))


def a_worker_is_taken_back_in_steps(twins: Twins) -> None:
    ids = send(twins, *"abcde", client="x", max_crashes=0)
    twins.claim("w0", ("mail",), 5)
    twins.cancel("mail", ids[4])
    twins.reclaim_child("mail", "w0", ids[1:2], 2)
    twins.claim("w1", ("mail",), 5)
    for _ in range(2):
        twins.advance(LEASE_MS // 2)
        twins.renew(["nobody"])
    for _ in range(3):
        twins.release_worker("mail", "w1", 2)


def a_worker_is_lost(twins: Twins) -> None:
    send(twins, "a")
    twins.claim("w0", ("mail",))
    twins.lose_worker("mail", "w0")
    twins.lose_worker("mail", "w1")
    twins.advance(1)
    twins.reclaim("mail")
    twins.audit("mail")


def suspects_run_in_groups(twins: Twins) -> None:
    ids = send(twins, *"abcdefgh", client="x", max_crashes=3)
    ids += send(twins, "i", client="y", max_crashes=1)
    for worker, wanted in (("w0", 9), ("w1", 4), ("w2", 2), ("w3", 8)):
        twins.sign_on(worker)
        twins.claim(worker, ("mail",), wanted, idle=8)
        twins.claim(worker, ("mail",), 8, idle=0)
        twins.reclaim_child("mail", worker, ids)
    send(twins, *"jk", client="z", at_front="1")
    send(twins, "l", queue="bulk")
    for number in range(8):
        twins.sign_on(f"v{number}")
        twins.claim(f"v{number}", ("mail", "bulk"), 8, idle=8)


def a_token_that_woke_for_another_queue_is_put_back(twins: Twins) -> None:
    for queue in ("mail", "bulk"):
        send(twins, "a", queue=queue)
    twins.take_token("bulk", "work_signal")
    twins.claim("w0", ("mail", "bulk"))
    twins.claim("w1", ("mail", "bulk"))


def a_log_left_a_job_deep_in_its_lane(twins: Twins) -> None:
    ids = send(twins, *"abc", client="x")
    twins.claim_half("mail", "torn", ids[2], [])


TURN_STORIES = (
    cancelled_jobs_cost_no_turn,
    behind_a_suspect_a_lane_begins_with_a_cancelled_job,
    who_was_not_run_is_next,
    a_worker_is_taken_back_in_steps,
    a_worker_is_lost,
    suspects_run_in_groups,
    a_token_that_woke_for_another_queue_is_put_back,
    a_log_left_a_job_deep_in_its_lane,
)
