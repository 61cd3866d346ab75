"""Scenarios: clients and queues that may run only so many jobs at once, and clients that are paused."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import KEEP_MS, run, send

ONE, TWO, NONE, RESUMED = "max_running=1", "max_running=2", "max_running=", ""


def a_client_reaches_its_limit_in_the_same_claim(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    send(parallel, "a", "b", client="x")
    send(parallel, "c", "d", "e", client="y", claimed=3)


def a_queue_at_its_limit(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": TWO})
    a, b, _ = send(parallel, *"abc", client="x")
    send(parallel, "d", client="x", queue="bulk")
    parallel.claim("w0", ("mail", "bulk"), 4)
    parallel.claim("w1", ("mail", "bulk"), 4)
    parallel.accidents.take_token("mail", "work_signal")
    run(parallel, "ack", [a], KEEP_MS, "")
    parallel.claim("w1", ("mail",), 4)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.reclaim_child("mail", "w0", [b])
    send(parallel, *"efg", client="y")
    parallel.claim("w1", ("mail",), 4)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.change_limits("mail", {"queue": NONE})


def a_client_gets_limits(parallel: ParallelRun) -> None:
    send(parallel, *"abcd", client="x", claimed=2)
    parallel.change_limits("mail", {"client:x": "max_running=2", "client:y": "max_waiting=1"})
    parallel.claim("w1", ("mail",))
    for text in ("max_running=3 rate=1/3000", "max_running=3 rate=1/3000"):
        parallel.change_limits("mail", {"client:x": text})
        parallel.claim("w1", ("mail",))
    send(parallel, *"ef", client="y")
    parallel.change_limits("mail", {"client:y": "max_waiting=2", "settings:client:y": "max_waiting=9 weight=2"})
    send(parallel, *"gh", client="y")
    parallel.change_limits("mail", {"client:y": ""})
    parallel.change_limits("mail", {"settings:client:y": "", "client:x": ""})


def what_runs_already_counts(parallel: ParallelRun) -> None:
    x = send(parallel, *"abcd", client="x", claimed=2)
    parallel.change_limits("mail", {"client:x": ONE})
    parallel.claim("w1", ("mail",))
    run(parallel, "ack", x[:1], KEEP_MS, "")
    parallel.claim("w1", ("mail",))
    parallel.change_limits("mail", {"client:x": NONE})
    parallel.claim("w1", ("mail",))
    run(parallel, "ack", x[1:2], KEEP_MS, "")
    parallel.change_limits("mail", {"client:x": ONE, "queue": TWO})
    parallel.change_limits("mail", {"client:x": TWO, "queue": NONE})
    parallel.claim("w1", ("mail",))


def a_worker_dies_and_gives_its_places_back(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": TWO, "queue": "max_running=3"})
    x, y = send(parallel, *"abc", client="x"), send(parallel, *"def", client="y", claimed=4)
    parallel.claim("w1", ("mail",), 4)
    parallel.cancel("mail", y[0])
    parallel.reclaim_child("mail", "w0", x[:1])
    parallel.claim("w1", ("mail",), 4)
    parallel.claim("w1", ("mail",), 4)


def a_blocked_client_has_nothing_left(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    x = send(parallel, "a", "b", client="x", claimed=1)
    parallel.claim("w0", ("mail",))
    parallel.purge("mail")
    run(parallel, "ack", x[:1], KEEP_MS, "")
    send(parallel, "c", "d", client="x", claimed=1)
    parallel.claim("w0", ("mail",))
    parallel.purge("mail")
    send(parallel, "e", client="x", claimed=1)


def the_log_has_lost_a_count(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    send(parallel, *"abc", client="x", claimed=1)
    parallel.claim("w0", ("mail",))
    parallel.accidents.bend_counts("mail", "x")
    parallel.accidents.lose_block("mail", "x")


def the_log_has_lost_that_a_client_is_blocked(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    send(parallel, *"abc", client="x", claimed=1)
    parallel.claim("w0", ("mail",))
    parallel.accidents.lose_turn("mail", (0, "x"))
    send(parallel, "d", client="y")
    parallel.change_limits("mail", {"client:x": NONE})
    parallel.claim("w1", ("mail",))


def what_was_set_at_run_time_wins(parallel: ParallelRun) -> None:
    send(parallel, *"abcd", client="x")
    parallel.change_limits("mail", {"run:clients": ONE, "settings:client:x": TWO, "settings:queue": ONE})
    parallel.change_limits("mail", {"settings:clients": "max_running=0", "run:queue": "max_running=4"})
    parallel.claim("w0", ("mail",), 4)
    parallel.change_limits("mail", {"settings:client:x": NONE})
    parallel.change_limits("mail", {"run:clients": NONE, "run:queue": NONE})
    parallel.change_limits("mail", {"run:client:x": "max_running=none", "settings:client:x": ONE})
    parallel.claim("w0", ("mail",), 4)
    parallel.change_limits("mail", {"run:client:x": ""})
    parallel.change_limits("bulk", {"queue": ONE})
    parallel.forget("bulk")


def a_full_client_wakes_nobody(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE, "client:y": "max_running=1 rate=9/1000", "client:z": TWO})
    a, *_ = send(parallel, *"abc", client="x", claimed=1)
    run(parallel, "ack", [a], KEEP_MS, "")
    parallel.claim("w0", ("mail",))
    send(parallel, "d", client="free", priority=-5)
    parallel.claim("w1", ("mail",))
    z = send(parallel, *"efg", client="z")
    parallel.claim("w1", ("mail",))
    parallel.claim("w1", ("mail",))
    run(parallel, "ack", z[:2], KEEP_MS, "")
    send(parallel, "h", "i", client="y")
    parallel.claim("w1", ("mail",), 2)
    parallel.claim("w1", ("mail",), 2)


def a_full_queue_wakes_nobody(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": "max_running=1", "client:x": "rate=1/3600000 burst=3"})
    a, *_ = send(parallel, *"abcd", client="x", claimed=1)
    parallel.change_limits("mail", {"queue": "max_running=2 rate=2/3600000 burst=2"})
    parallel.claim("w1", ("mail",))
    run(parallel, "ack", [a], KEEP_MS, "")


def a_higher_limit_lets_a_full_client_go_on(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    send(parallel, "a", "b", client="x", claimed=1)
    parallel.change_limits("mail", {"client:x": TWO})
    parallel.claim("w1", ("mail",))


def who_leaves_a_ring_leaves_a_blocked_client_behind(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": ONE})
    send(parallel, "a", "b", client="x", claimed=1)
    parallel.claim("w1", ("mail",))
    (job,) = send(parallel, "c", client="y")
    parallel.cancel("mail", job)


def a_paused_client(parallel: ParallelRun) -> None:
    (a, b, _), _ = send(parallel, *"abc", client="x"), send(parallel, *"de", client="y", claimed=1)
    parallel.change_limits("mail", {"paused:x": "1 me"})
    send(parallel, "f", client="x", priority=5, claimed=2)
    run(parallel, "ack", [a], KEEP_MS, "")
    parallel.cancel("mail", b)
    parallel.claim("w1", ("mail",), 2)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.change_limits("mail", {"paused:x": RESUMED})
    parallel.claim("w1", ("mail",), 2)
