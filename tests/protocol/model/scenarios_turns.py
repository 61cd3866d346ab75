"""Scenarios: the turns of clients when jobs are cancelled, released or crash, and when workers are lost."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import KEEP_MS, send
from tests.protocol.model.state import LEASE_MS


def cancelled_jobs_cost_no_turn(parallel: ParallelRun) -> None:
    x = send(parallel, *"ab", client="x")
    parallel.advance(1)
    x += send(parallel, *"cdef", client="x")
    y = send(parallel, *"ghi", client="y")
    for job_id in (x[0], x[1], x[3], y[1]):
        parallel.cancel("mail", job_id)
    parallel.claim("w0", ("mail",))
    parallel.claim("w0", ("mail",), 3)
    for job_id in send(parallel, "j", client="z") + send(parallel, "k", client="z", priority=-5):
        parallel.cancel("mail", job_id)
    parallel.claim("w0", ("mail", "bulk"), 5)
    _, behind = send(parallel, *"lm", client="v")
    parallel.cancel("mail", behind)
    parallel.claim("w0", ("mail",))  # a lane without jobs is left


def a_worker_is_taken_back_in_steps(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcde", client="x", max_crashes=0, claimed=5)
    parallel.cancel("mail", ids[4])
    parallel.reclaim_child("mail", "w0", ids[1:2], 2)
    parallel.claim("w1", ("mail",), 5)
    for _ in range(2):
        parallel.advance(LEASE_MS // 2)
        parallel.renew(["nobody"])
    for _ in range(3):
        parallel.release_worker("mail", "w1", 2)


def a_worker_is_lost(parallel: ParallelRun) -> None:
    send(parallel, "a", claimed=1)
    parallel.accidents.lose_worker("mail", "w0")
    parallel.accidents.lose_worker("mail", "w1")
    parallel.advance(1)
    parallel.reclaim("mail")
    parallel.audit("mail")


def suspects_run_in_groups(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcdefgh", client="x", max_crashes=3)
    ids += send(parallel, "i", client="y", max_crashes=1)
    for worker, wanted in (("w0", 9), ("w1", 4), ("w2", 2), ("w3", 8)):
        parallel.sign_on(worker)
        parallel.claim(worker, ("mail",), wanted, idle=8)
        parallel.claim(worker, ("mail",), 8, idle=0)
        parallel.reclaim_child("mail", worker, ids)
    send(parallel, *"jk", client="z", at_front="1")
    send(parallel, "l", queue="bulk")
    for number in range(8):
        parallel.sign_on(f"v{number}")
        parallel.claim(f"v{number}", ("mail", "bulk"), 8, idle=7)


def a_claim_goes_through_several_queues(parallel: ParallelRun) -> None:
    send(parallel, "a", "b")
    send(parallel, "c", queue="bulk")
    parallel.claim("w0", ("bulk", "mail"), 2)
    parallel.claim("w0", ("bulk", "bulk", "mail"))
    send(parallel, "d")
    parallel.accidents.take_token("mail", "work_signal")
    send(parallel, "e", queue="bulk")
    parallel.claim("w0", ("bulk", "mail"))
    parallel.claim("w0", ("bulk", "bulk", "mail", "bulk"))
    parallel.claim("w0", ("mail", "bulk"))


def a_worker_is_known_in_one_of_two_queues(parallel: ParallelRun) -> None:
    send(parallel, "a")
    send(parallel, "b", queue="bulk")
    parallel.sign_on("w2", ("mail",))
    parallel.claim("w2", ("mail", "bulk"), 3)
    parallel.claim("w2", ("mail", "bulk"), 3)
    parallel.claim("w2", ("bulk", "mail"), 3)
    parallel.claim("w0", ("bulk", "mail"), 3)
    parallel.claim("w2", ("mail", "bulk"), 3)
    parallel.claim("w2", ("mail",), 3)


def clients_stand_aside(parallel: ParallelRun) -> None:
    """Their jobs have crashed processes: others come first, and in lower bands, too."""
    for weight in ("", "weight=2"):
        parallel.change_limits("mail", {"client:x": weight})
        send(parallel, "urgent", client="x", priority=5)
        for client in "xyxz":
            send(parallel, *"ab", client=client, priority=2)
        send(parallel, "c", client="y")
        send(parallel, "d", client="x", queue="bulk")
        for wanted, aside in ((1, "x"), (2, "xy"), (3, "xyz"), (9, "x"), (1, "yz")):
            named = [("mail", client) for client in aside]
            parallel.claim("w0", ("bulk", "mail"), wanted, aside=named)
            parallel.claim("w1", ("mail",), wanted, aside=[*named, ("bulk", "y")])
        parallel.claim("w0", ("mail",), 20)


def a_claim_settles(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd")
    (other,) = send(parallel, "e", queue="bulk")
    parallel.claim("w0", ("mail", "bulk"), 2)
    parallel.claim("w1", ("bulk",))
    acks = {"ack": [(job_id, KEEP_MS, '"x"') for job_id in ids[:2]]}
    parallel.fetch("w1", {"mail": acks}, ("mail",), wanted=1)  # not its own
    parallel.fetch("w0", {"mail": acks, "bulk": {"ack": [(other, KEEP_MS, "")]}}, ("mail",), wanted=1)
    parallel.fetch("w1", {"bulk": {"ack": [(other, KEEP_MS, "")]}}, ("bulk", "mail"), wanted=3)
    parallel.fetch("w1", {"bulk": {"ack": [(other, KEEP_MS, "")]}}, ("bulk", "mail"), wanted=3)
