"""Scenarios: clients that have weights."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import run, send

CLIENTS = ("x", "xy", "ü", "")


def flood(parallel: ParallelRun, jobs: int = 12) -> None:
    for place, client in enumerate(CLIENTS):
        send(parallel, *(f"{place}-{number:02}" for number in range(jobs)), client=client)


def heavy_clients_start_more_often(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:xy": "weight=5", "client:ü": "weight=0.5"})
    flood(parallel)
    for wanted in (1, 1, 1, 2, 3, 7, 1, 9):
        parallel.claim("w0", ("mail",), wanted)


def strides_follow_the_default(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "weight=3", "client:x": "weight=1"})
    flood(parallel)
    parallel.claim("w0", ("mail",), 9)
    parallel.change_limits("mail", {"clients": "weight=0.3", "client:xy": "weight=4"})
    for wanted in (1, 2, 10, 3):
        parallel.claim("w0", ("mail",), wanted)


def weights_come_when_clients_wait(parallel: ParallelRun) -> None:
    flood(parallel)
    parallel.claim("w0", ("mail",), 6)
    parallel.change_limits("mail", {"client:x": "weight=2"})
    parallel.claim("w0", ("mail",), 6)
    send(parallel, *"mnop", client="new")
    send(parallel, *"qr", client="xy", priority=5)
    for wanted in (1, 1, 8):
        parallel.claim("w0", ("mail",), wanted)
    parallel.change_limits("mail", {"client:x": ""})
    send(parallel, "s", "t", client="newer", claimed=8)
    parallel.change_limits("mail", {"client:new": "weight=2"})
    parallel.claim("w0", ("mail",), 8)


def nobody_waits_for_an_old_turn(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": "weight=0.01", "client:ü": "weight=20"})
    flood(parallel)
    parallel.claim("w0", ("mail",), 10)
    send(parallel, "y", client="new")
    parallel.change_limits("mail", {"client:x": "weight=1"})
    parallel.claim("w0", ("mail",), 6)
    parallel.change_limits("mail", {"client:x": "weight=0.01"})
    parallel.claim("w0", ("mail",), 6)
    parallel.change_limits("mail", {"client:x": "weight=", "client:ü": "weight="})
    parallel.claim("w0", ("mail",), 6)


def heavy_clients_have_limits_too(parallel: ParallelRun) -> None:
    parallel.change_limits(
        "mail", {"client:x": "weight=5 max_running=2", "clients": "max_running=3", "queue": "max_running=9"}
    )
    flood(parallel, 6)
    parallel.claim("w0", ("mail",), 7)
    parallel.claim("w1", ("mail",), 7)
    for worker in ("w0", "w1"):
        held = sorted(parallel.models["mail"].running[worker])
        run(parallel, "ack", held[:3], 1000, "", worker=worker)
        parallel.claim(worker, ("mail",), 4)


def of_equal_turns_names_decide(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:z": "weight=2"})
    send(parallel, *"abc", client="z")
    send(parallel, *"def", client="a", claimed=2)
    parallel.claim("w0", ("mail",), 3)


def others_come_before_the_second_job_of_the_last(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:w": "weight=2"})
    for job_id in send(parallel, "a", "b", client="x"):
        parallel.cancel("mail", job_id)
    send(parallel, *"cde", client="y")
    send(parallel, *"fgh", client="z", claimed=2)


def a_cancelled_job_costs_no_turn(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": "weight=2"})
    parallel.cancel("mail", send(parallel, *"abcd", client="y")[1])
    send(parallel, *"efg", client="z", claimed=3)


def two_light_clients_become_heavy(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": "weight=0.01", "client:xy": "weight=0.02", "client:ü": "weight=2"})
    flood(parallel, 20)
    parallel.claim("w0", ("mail",), 9)
    parallel.change_limits("mail", {"client:x": "weight="})
    parallel.claim("w0", ("mail",), 9)
    parallel.claim("w0", ("mail",), 9)


def some_have_nothing_left(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:y": "weight=3"})
    x = send(parallel, *"abc", client="x")
    y = send(parallel, *"defghi", client="y")
    send(parallel, *"jklm", client="z")
    for job_id in (*x, y[0], y[3]):
        parallel.cancel("mail", job_id)
    parallel.claim("w0", ("mail",), 2)
    parallel.claim("w0", ("mail",), 8)
    send(parallel, *"no", client="x")
    parallel.purge("mail", 2)
    send(parallel, *"pq", client="y", claimed=3)


def a_paused_client_stays_blocked_when_nothing_waits(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": "weight=2", "paused:x": "1 me"})
    blocked = send(parallel, "a", client="x")
    send(parallel, "b", client="y")  # it stays in the ring without work
    waiting = send(parallel, "c", client="z", claimed=1)
    for job_id in (*blocked, *waiting):
        parallel.cancel("mail", job_id)
    parallel.claim("w0", ("mail",))
    send(parallel, *"def", client="x", claimed=1)
    parallel.change_limits("mail", {"paused:x": ""})
    send(parallel, *"gh", client="y", claimed=4)
