"""Scenarios: queues and clients that take in no more jobs than may wait."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import KEEP_MS, new_job, run, send, unique_job

ONE, TWO, THREE = "max_waiting=1", "max_waiting=2", "max_waiting=3"


def a_queue_is_full(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": TWO})
    send(parallel, "a", client="x")
    send(parallel, "b", client="y", due="+3000")
    send(parallel, "c", client="z")
    send(parallel, "d", client="z", due="+3000", claimed=1)
    send(parallel, *"efg", client="x")
    parallel.promote_after(3000)
    send(parallel, "h", client="x")
    parallel.change_limits("mail", {"queue": "max_waiting="})
    send(parallel, "i", client="x")


def cancelled_jobs_do_not_wait(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": THREE})
    first, second, third = send(parallel, *"abc", client="x")
    others = send(parallel, *"uvw", client="y")
    parallel.cancel("mail", others[1])
    send(parallel, "d", client="x")
    parallel.cancel("mail", second)
    send(parallel, *"ef", client="x")
    parallel.advance(10)
    for job_id in (third, first, *others[::2]):
        parallel.cancel("mail", job_id)
    send(parallel, *"ghi", client="x")
    send(parallel, "z", client="y")


def what_is_dead_or_runs_does_not_wait(parallel: ParallelRun) -> None:
    a, b, _ = send(parallel, *"abc", claimed=2)
    run(parallel, "bury", [a], 1, "{}")
    parallel.change_limits("mail", {"queue": TWO})
    send(parallel, "d", "e")
    run(parallel, "retry", [b], 3000, 1, "{}")
    send(parallel, "f")
    parallel.requeue("mail", [a])


def a_client_is_full(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": THREE, "client:y": ONE, "client:z": "max_waiting=none"})
    send(parallel, *"ab", client="x", priority=5)
    send(parallel, "c", client="x", due="+3000")
    send(parallel, "d", client="x")
    send(parallel, *"ef", client="y")
    send(parallel, *"ghijk", client="z")


def a_blocked_client_is_full(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": TWO, "paused:x": "1 max_waiting=9", "paused:y": "1 me"})
    send(parallel, "a", client="x", priority=5, claimed=1)
    send(parallel, *"bc", client="x", priority=5)
    send(parallel, "d", client="y", claimed=1)
    send(parallel, "e", client="z", priority=5)
    parallel.change_limits("mail", {"client:x": THREE})
    send(parallel, *"fg", client="x", priority=5)


def all_or_none(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": THREE, "client:x": TWO})
    x = [new_job(parallel, name, client="x") for name in "abc"]
    parallel.enqueue("mail", [new_job(parallel, "d", client="y"), *x], together=True)
    parallel.enqueue("mail", x[:2], together=True)
    parallel.enqueue("mail", [*x[:2], e := new_job(parallel, "e", client="y")], together=True)
    parallel.change_limits("mail", {"queue": "max_waiting=4"})
    parallel.enqueue("mail", [e, new_job(parallel, "f", client="y")])


def unique_jobs_of_a_full_queue(parallel: ParallelRun) -> None:
    first = unique_job(parallel, "a")
    parallel.enqueue("mail", [first])
    parallel.change_limits("mail", {"queue": ONE})
    for conflict in ("return", "replace", "rerun"):
        parallel.enqueue("mail", [unique_job(parallel, f"b-{conflict}", conflict=conflict)])
    parallel.enqueue("mail", [first, unique_job(parallel, "c", "d2")])
    parallel.claim("w0", ("mail",))
    parallel.change_limits("mail", {"queue": "max_waiting=0"})
    parallel.enqueue("mail", [unique_job(parallel, "d", conflict="rerun"), unique_job(parallel, "e")])
    parallel.change_limits("mail", {"queue": ONE})
    parallel.enqueue("mail", [unique_job(parallel, name, conflict="rerun") for name in "fg"])
    run(parallel, "ack", [first.id], KEEP_MS, "")


def all_or_none_of_unique_jobs(parallel: ParallelRun) -> None:
    owner = unique_job(parallel, "a")
    parallel.enqueue("mail", [owner])
    parallel.claim("w0", ("mail",))
    parallel.change_limits("mail", {"queue": TWO})
    again = unique_job(parallel, "c", "d2")
    jobs = [
        unique_job(parallel, "b", "d2"),
        unique_job(parallel, "d", "d2"),
        unique_job(parallel, "e"),
        unique_job(parallel, "f", ""),
    ]
    parallel.enqueue("mail", [*jobs, unique_job(parallel, "g", "d3")], together=True)
    parallel.enqueue("mail", [*jobs, jobs[0], jobs[3], again], together=True)
    parallel.enqueue("mail", [*jobs, jobs[0]], together=True)
    parallel.change_limits("mail", {"queue": THREE})
    rerun = [unique_job(parallel, name, conflict="rerun") for name in "hi"]
    parallel.enqueue("mail", [*rerun, unique_job(parallel, "j", "d4")], together=True)
    parallel.enqueue("mail", rerun, together=True)
    parallel.change_limits("mail", {"queue": "max_waiting=0"})
    twins = [unique_job(parallel, name, "d5") for name in "kl"]  # the first is refused, so the second has no owner
    parallel.enqueue("mail", [*twins, twins[0]], together=True)
