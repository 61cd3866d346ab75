"""Scenarios: clients and queues that may start only so many jobs in a time."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import KEEP_MS, run, send
from tests.protocol.model.scenarios_limits import ONE, RESUMED, TWO


def a_client_waits_for_its_rate(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "rate=10/1000 burst=2", "client:z": "rate=3/1000"})
    x, _ = send(parallel, *"abcde", client="x"), send(parallel, *"fgh", client="y")
    send(parallel, *"ijk", client="z", priority=-5, claimed=3)
    parallel.claim("w1", ("mail",), 5)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.accidents.take_token("mail", "due_signal")
    parallel.promote_after(99)
    parallel.promote_after(1)
    parallel.claim("w1", ("mail",), 5)
    run(parallel, "release", [x[2]])
    parallel.claim("w1", ("mail",), 5)
    parallel.promote_after(250, 1)
    parallel.promote("mail", 1)
    parallel.claim("w1", ("mail",), 1)
    parallel.claim("w0", ("mail",), 5)
    parallel.promote_after(500)


def a_rate_and_a_cap_stop_a_client(parallel: ParallelRun) -> None:
    """Whichever lasts longer decides."""
    parallel.change_limits("mail", {"client:x": "max_running=1 rate=1/1000"})
    a, b, c, _ = send(parallel, *"abcd", client="x", claimed=2)
    run(parallel, "ack", [a], KEEP_MS, "")
    parallel.promote_after(1000)
    parallel.claim("w0", ("mail",), 2)
    parallel.promote_after(1000)
    run(parallel, "ack", [b], KEEP_MS, "")
    parallel.claim("w0", ("mail",), 2)
    parallel.change_limits("mail", {"paused:x": "1 me"})
    run(parallel, "ack", [c], KEEP_MS, "")
    parallel.promote_after(2000)
    parallel.change_limits("mail", {"paused:x": RESUMED})
    parallel.claim("w0", ("mail",), 2)


def a_queue_waits_for_its_rate(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": "rate=1000/1000 burst=10"})
    mail = send(parallel, *(f"{n}" for n in range(40)), client="x")
    send(parallel, "a", client="x", queue="bulk")
    parallel.claim("w0", ("mail", "bulk"), 12)
    parallel.accidents.take_token("mail", "work_signal")
    parallel.claim("w1", ("mail", "bulk"), 12)
    parallel.accidents.take_token("mail", "due_signal")
    parallel.promote_after(5)
    parallel.claim("w1", ("mail",), 12)
    run(parallel, "release", mail[:4])
    parallel.claim("w1", ("mail",), 12)
    parallel.claim("w1", ("mail",), 1)
    parallel.promote_after(5)
    parallel.change_limits("mail", {"queue": "max_running=19"})
    parallel.claim("w1", ("mail",), 12)
    parallel.claim("w1", ("mail",), 12)
    parallel.purge("mail")
    parallel.promote_after(100)


def a_rate_changes_while_a_client_waits(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "rate=1/3600000", "client:y": "rate=2/3600000"})
    send(parallel, *"abcdef", client="x")
    send(parallel, *"ghi", client="y", claimed=4)
    parallel.change_limits("mail", {"clients": "rate=10/1000"})
    parallel.promote_after(100)
    parallel.claim("w0", ("mail",), 2)
    parallel.change_limits("mail", {"clients": "rate=none"})
    parallel.claim("w0", ("mail",), 2)
    parallel.change_limits("mail", {"clients": "rate=10/1000"})
    parallel.claim("w0", ("mail",), 2)
    parallel.change_limits("mail", {"clients": "", "client:y": ""})
    parallel.claim("w0", ("mail",), 5)


def busy_workers_need_no_scheduler(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {f"client:{name}": "rate=10/1000" for name in "xz"})
    send(parallel, *"abc", client="x", priority=5)
    send(parallel, *"def", client="z")
    send(parallel, *"ghijklm", client="y", priority=-5, claimed=3)
    parallel.advance(99)
    parallel.claim("w0", ("mail",), 1)
    parallel.advance(1)
    parallel.claim("w0", ("mail",), 3)


def a_rate_of_a_client_without_jobs(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "rate=10/1000"})
    send(parallel, "a", "b", client="x", claimed=2)
    parallel.purge("mail")
    parallel.advance(50)
    send(parallel, "c", client="y", claimed=2)
    parallel.promote_after(50)
    send(parallel, "d", client="x", claimed=2)
    parallel.advance(100)
    parallel.claim("w0", ("mail",), 2)


def part_of_a_start_is_none(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "rate=10/1000", "client:fast": "rate=1000/1000 burst=2"})
    parallel.change_limits("mail", {"client:two": "rate=20/1000"})
    send(parallel, "a", client="x", claimed=5)
    parallel.advance(97)
    send(parallel, "b", client="x", claimed=5)
    parallel.accidents.take_token("mail", "due_signal")
    send(parallel, *"cdef", client="two", claimed=5)
    send(parallel, *"ghij", client="fast", claimed=5)
    send(parallel, "k", client="x", due="+1")
    parallel.promote("mail")
    parallel.promote_after(1)
    parallel.advance(47)
    parallel.change_limits("mail", {"client:y": ONE})


def due_starts_of_a_queue_without_room_or_work(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"queue": TWO, "clients": "rate=10/1000"})
    x = send(parallel, "a", "b", client="x", claimed=2)
    send(parallel, "c", client="y")
    send(parallel, "d", client="z", claimed=1)
    parallel.advance(100)
    parallel.claim("w1", ("mail",), 1)
    parallel.change_limits("mail", {"queue": "max_running= rate=10/1000"})
    run(parallel, "ack", x[:1], KEEP_MS, "")
    parallel.claim("w1", ("mail",), 1)
    parallel.claim("w1", ("mail",), 1)
    parallel.purge("mail")
    parallel.purge("mail")
    parallel.change_limits("mail", {"queue": "rate="})
    parallel.claim("w1", ("mail",), 5)
    parallel.promote_after(100)


def the_log_has_lost_when_a_client_may_start(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "rate=10/1000"})
    send(parallel, *"abc", client="x", claimed=2)
    parallel.accidents.lose_next_start("mail", "x")
    parallel.advance(100)
    parallel.accidents.lose_next_start("mail", "x")
    parallel.claim("w0", ("mail",), 2)
