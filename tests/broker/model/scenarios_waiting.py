"""Scenarios: queues and clients that take in no more jobs than may wait."""

from __future__ import annotations

from typing import Any

from django_rtq.broker.messages import UniqueJob
from tests.broker.model.parallel_run import ParallelRun
from tests.broker.model.scenarios import KEEP_MS, new_job, run, send
from tests.broker.model.state import RESULT_MS

ONE, TWO, THREE = "max_waiting=1", "max_waiting=2", "max_waiting=3"


def unique(parallel: ParallelRun, name: str, digest: str = "d1", conflict: str = "return", **options: Any) -> UniqueJob:
    return UniqueJob(*new_job(parallel, name, **options), digest, "done", RESULT_MS, conflict)


def a_queue_is_full(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": TWO})
    send(parallel, "a", client="x")
    send(parallel, "b", client="y", due="+3000")
    send(parallel, "c", client="z")
    send(parallel, "d", client="z", due="+3000")
    parallel.claim("w0", ("mail",))
    send(parallel, *"efg", client="x")
    parallel.advance(3000)
    parallel.promote("mail")
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
    a, b, _ = send(parallel, *"abc")
    parallel.claim("w0", ("mail",), 2)
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
    send(parallel, "a", client="x", priority=5)
    parallel.claim("w0", ("mail",))
    send(parallel, *"bc", client="x", priority=5)
    send(parallel, "d", client="y")
    parallel.claim("w0", ("mail",))
    send(parallel, "e", client="z", priority=5)
    parallel.change_limits("mail", {"client:x": THREE})
    send(parallel, *"fg", client="x", priority=5)


def a_job_is_sent_twice_to_a_full_queue(parallel: ParallelRun) -> None:
    a, b = new_job(parallel, "a"), new_job(parallel, "b", due="+3000")
    parallel.enqueue("mail", [a])
    parallel.enqueue("mail", [b])
    parallel.change_limits("mail", {"queue": TWO})
    for jobs in ([a], [b], [a, b, new_job(parallel, "c")]):
        parallel.enqueue("mail", jobs)
    parallel.change_limits("mail", {"queue": THREE})
    d = new_job(parallel, "d")
    parallel.enqueue("mail", [d, d])


def all_or_none(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": THREE, "client:x": TWO})
    x = [new_job(parallel, name, client="x") for name in "abc"]
    parallel.enqueue("mail", [new_job(parallel, "d", client="y"), *x], together=True)
    parallel.enqueue("mail", x[:2], together=True)
    parallel.enqueue("mail", [*x[:2], new_job(parallel, "e", client="y")], together=True)


def unique_jobs_of_a_full_queue(parallel: ParallelRun) -> None:
    first = unique(parallel, "a")
    parallel.enqueue_unique("mail", [first])
    parallel.change_limits("mail", {"queue": ONE})
    for conflict in ("return", "replace", "rerun"):
        parallel.enqueue_unique("mail", [unique(parallel, f"b-{conflict}", conflict=conflict)])
    parallel.enqueue_unique("mail", [first, unique(parallel, "c", "d2")])
    parallel.claim("w0", ("mail",))
    parallel.change_limits("mail", {"queue": "max_waiting=0"})
    parallel.enqueue_unique("mail", [unique(parallel, "d", conflict="rerun"), unique(parallel, "e")])
    parallel.change_limits("mail", {"queue": ONE})
    parallel.enqueue_unique("mail", [unique(parallel, name, conflict="rerun") for name in "fg"])
    run(parallel, "ack", [first.id], KEEP_MS, "")


def all_or_none_of_unique_jobs(parallel: ParallelRun) -> None:
    owner = unique(parallel, "a")
    parallel.enqueue_unique("mail", [owner])
    parallel.claim("w0", ("mail",))
    parallel.change_limits("mail", {"queue": TWO})
    again = unique(parallel, "c", "d2")
    jobs = [unique(parallel, "b", "d2"), unique(parallel, "d", "d2"), unique(parallel, "e"), unique(parallel, "f", "")]
    parallel.enqueue_unique("mail", [*jobs, unique(parallel, "g", "d3")], together=True)
    parallel.enqueue_unique("mail", [*jobs, jobs[0], jobs[3], again], together=True)
    parallel.enqueue_unique("mail", [*jobs, jobs[0]], together=True)
    parallel.change_limits("mail", {"queue": THREE})
    rerun = [unique(parallel, name, conflict="rerun") for name in "hi"]
    parallel.enqueue_unique("mail", [*rerun, unique(parallel, "j", "d4")], together=True)
    parallel.enqueue_unique("mail", rerun, together=True)
    parallel.change_limits("mail", {"queue": "max_waiting=0"})
    twins = [unique(parallel, name, "d5") for name in "kl"]  # the first is refused, so the second has no owner
    parallel.enqueue_unique("mail", [*twins, twins[0]], together=True)


def the_oldest_make_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": THREE})
    drop(parallel, "a", client="x", body='{"task":"t"}')
    parallel.advance(1)
    drop(parallel, "b", client="x", priority=5)
    parallel.advance(1)
    drop(parallel, "c", client="y")
    parallel.advance(1)
    drop(parallel, *"de", client="z")
    drop(parallel, *"fghij", client="x")
    parallel.claim("w0", ("mail",), 2)
    drop(parallel, *"klm", client="y", due="+3000")
    drop(parallel, "n", client="y")


def the_oldest_of_a_client_make_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": TWO, "queue": "max_waiting=5"})
    drop(parallel, "a", client="other")
    for name, priority in (("b", 5), ("c", 0), ("d", 0), ("e", 5), ("f", -5), ("g", 5)):
        parallel.advance(1)
        drop(parallel, name, client="x", priority=priority)
    drop(parallel, *"hi", client="y", due="+3000")
    drop(parallel, "j", client="y")
    drop(parallel, "k", client="z", due="+3000")
    drop(parallel, *"lm", client="z")
    drop(parallel, *"no", client="v")


def delayed_jobs_are_not_dropped(parallel: ParallelRun) -> None:
    drop(parallel, *"ab", client="x", due="+3000")
    drop(parallel, *"cd", client="y")
    drop(parallel, "e", client="x")
    parallel.change_limits("mail", {"queue": TWO})
    drop(parallel, "f", client="z")
    parallel.change_limits("mail", {"queue": THREE, "client:x": TWO})
    drop(parallel, "g", client="x")
    drop(parallel, "h", client="z")
    parallel.change_limits("mail", {"queue": "max_waiting=0"})
    drop(parallel, "i", client="y")


def jobs_in_front_do_not_make_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": THREE})
    for name, at_front in (("a", ""), ("b", ""), ("c", "1"), ("d", "1"), ("e", ""), ("f", "1")):
        parallel.advance(1)
        drop(parallel, name, client="x", at_front=at_front)
    parallel.claim("w0", ("mail",))
    parallel.advance(1)
    drop(parallel, *"ghi", client="y")


def cancelled_jobs_make_room(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd", client="x")
    parallel.cancel("mail", ids[1])  # it stays in its lane
    parallel.change_limits("mail", {"clients": THREE, "queue": TWO})
    parallel.advance(1)
    drop(parallel, "e", client="y")
    parallel.cancel("mail", ids[3])
    drop(parallel, *"fg", client="x")
    parallel.enqueue("mail", [new_job(parallel, "h", client="x")._replace(id=ids[1])], drops=True)


def a_blocked_client_makes_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": TWO, "paused:x": "1 me"})
    drop(parallel, "a", client="x", priority=5)
    parallel.claim("w0", ("mail",))
    parallel.advance(1)
    drop(parallel, *"bc", client="x", priority=5)
    drop(parallel, *"de", client="x")
    parallel.change_limits("mail", {"paused:x": ""})
    parallel.claim("w0", ("mail",), 3)


def more_has_to_go_than_one_call_drops(parallel: ParallelRun) -> None:
    send(parallel, *(f"{n:03}" for n in range(110)), client="x")
    parallel.change_limits("mail", {"queue": ONE})
    drop(parallel, *"ab", client="y")
    drop(parallel, "c", client="y")


def unique_jobs_make_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": TWO})
    first, second = unique(parallel, "a"), unique(parallel, "b", "d2")
    parallel.enqueue_unique("mail", [first, second], drops=True)
    parallel.advance(1)
    third = [unique(parallel, "c"), unique(parallel, "d", "d3"), unique(parallel, "e")]
    for _ in range(2):
        parallel.enqueue_unique("mail", third, drops=True)
    parallel.claim("w0", ("mail",))
    parallel.enqueue_unique("mail", [unique(parallel, "f", "d3", "rerun"), unique(parallel, "g", "d4")], drops=True)
    parallel.enqueue_unique("mail", [unique(parallel, "h", "d5")], drops=True)


def all_or_none_make_room(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": THREE, "client:x": TWO})
    drop(parallel, *"ab", client="x")
    drop(parallel, "c", client="y", due="+3000")
    parallel.advance(1)
    d, e, f = (new_job(parallel, name, client="x", at_front="1") for name in "def")
    parallel.enqueue("mail", [d, e, f], together=True, drops=True)
    for _ in range(2):
        parallel.enqueue("mail", [d, e], together=True, drops=True)
    parallel.enqueue("mail", [f, new_job(parallel, "g", client="z"), new_job(parallel, "h", client="z")], together=True)
    twins = [unique(parallel, "i"), unique(parallel, "j"), unique(parallel, "k", "d2")]
    parallel.enqueue_unique("mail", twins, together=True, drops=True)
    parallel.enqueue_unique("mail", [*twins, unique(parallel, "l", "d3")], together=True, drops=True)


def who_has_nothing_left_leaves_the_ring(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": ONE, "paused:x": "1 me"})
    drop(parallel, "a", client="x", priority=5)
    parallel.claim("w0", ("mail",))
    drop(parallel, "b", client="y", priority=5)
    drop(parallel, "c", client="z")
    drop(parallel, "d", client="v")
    drop(parallel, "e", client="x", priority=5)
    parallel.change_limits("mail", {"paused:x": "", "queue": TWO})
    drop(parallel, *"fg", client="v")
    parallel.claim("w0", ("mail",), 3)


def drop(parallel: ParallelRun, *names: str, **options: Any) -> None:
    """Enqueue jobs, and drop the oldest if they do not fit."""
    parallel.enqueue("mail", [new_job(parallel, name, **options) for name in names], drops=True)


WAITING_SCENARIOS = (
    the_oldest_make_room,
    the_oldest_of_a_client_make_room,
    delayed_jobs_are_not_dropped,
    jobs_in_front_do_not_make_room,
    cancelled_jobs_make_room,
    a_blocked_client_makes_room,
    more_has_to_go_than_one_call_drops,
    unique_jobs_make_room,
    who_has_nothing_left_leaves_the_ring,
    all_or_none_make_room,
    a_queue_is_full,
    cancelled_jobs_do_not_wait,
    what_is_dead_or_runs_does_not_wait,
    a_client_is_full,
    a_blocked_client_is_full,
    a_job_is_sent_twice_to_a_full_queue,
    all_or_none,
    unique_jobs_of_a_full_queue,
    all_or_none_of_unique_jobs,
)
