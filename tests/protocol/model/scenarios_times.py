"""Scenarios: clients take turns by the time that their jobs used."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import send

BY_TIME = {"queue": "fair_by=seconds"}


def end(parallel: ParallelRun, worker: str, ms: str = "", verb: str = "ack", wanted: int = 1, after: int = 0) -> None:
    """After some time the jobs of a worker end, which took so long. Then it claims."""
    if after:
        parallel.advance(after)
    held = list(parallel.models["mail"].running[worker])
    if ms and held:
        parallel.note_times("mail", worker, dict.fromkeys(held, ms))
    tail = {"ack": (60_000, ""), "retry": (1000, 1, "{}"), "bury": (1, "{}"), "release": ()}[verb]
    parallel.fetch(worker, {"mail": {verb: [(job_id, *tail) for job_id in held]}}, ("mail",), wanted=wanted)


def flood(parallel: ParallelRun, limits: dict[str, str], jobs: int = 8) -> None:
    parallel.change_limits("mail", limits)
    for client in ("x", "y", ""):
        send(parallel, *(f"{client or 'z'}{number:02}" for number in range(jobs)), client=client)


def long_jobs_come_less_often(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME | {"client:y": "weight=2"})
    parallel.claim("w0", ("mail",))
    for ms in (40, 3, 5, 700, 2, 2, 90, 1, 4, 4, 30, 2):
        end(parallel, "w0", f"{ms - 0.25}", after=ms)


def what_the_worker_says_is_not_all(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME)
    parallel.claim("w0", ("mail",), 4)
    end(parallel, "w0", "5000", wanted=3, after=30)
    end(parallel, "w0", verb="bury", wanted=3, after=20)
    end(parallel, "w0", verb="retry", wanted=2, after=20)


def running_jobs_of_heavy_clients_count(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"client:x": "weight=2", "client:": "weight=0.5"})
    running_jobs_count(parallel)


def running_jobs_count(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME)
    parallel.claim("w0", ("mail",), 2)
    parallel.claim("w1", ("mail",))
    for ms in (60, 5, 900, 30, 2000, 2, 2):
        end(parallel, "w1", "2", after=ms)
    end(parallel, "w0")


def what_did_not_run_costs_nothing(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME)
    parallel.claim("w0", ("mail",), 3)
    end(parallel, "w0", verb="release", wanted=2, after=15)
    parallel.advance(15)
    parallel.reclaim_child("mail", "w0", list(parallel.models["mail"].running["w0"])[:1])
    parallel.claim("w1", ("mail",), 2)
    end(parallel, "w1", "5", after=5)


def a_claim_charges_no_more_than_a_second(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME)
    parallel.claim("w0", ("mail",))
    for ms in (9000, 9000, 3, 3):
        end(parallel, "w0", str(ms), after=ms)
    parallel.claim("w1", ("mail",), 4)


def who_is_blocked_keeps_its_turn(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME | {"client:x": "max_running=1", "client:y": "max_running=1"})
    parallel.claim("w0", ("mail",))
    for ms in (3, 50, 4, 4, 300, 4, 4, 4):
        parallel.claim("w1", ("mail",), 2)
        end(parallel, "w1", "3", after=ms)
        if ms >= 50:
            end(parallel, "w0")
    parallel.change_limits("mail", {"paused:y": "1 me"})
    for _ in range(9):
        end(parallel, "w1", "5", after=5)
        end(parallel, "w0", "5")
    parallel.audit("mail")


def a_debt_has_an_end(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", BY_TIME | {"client:x": "max_running=1 weight=0.01"})
    send(parallel, *"abc", client="x", claimed=1)
    parallel.claim("w1", ("mail",))
    send(parallel, *"defg", client="y")
    parallel.claim("w1", ("mail",))
    end(parallel, "w0", "60000", after=60_000)
    for _ in range(4):
        end(parallel, "w1", "5", after=5)


def it_begins_and_ends(parallel: ParallelRun) -> None:
    flood(parallel, {"client:x": "max_running=5"})
    parallel.claim("w0", ("mail",), 4)
    parallel.advance(500)
    parallel.change_limits("mail", BY_TIME)
    parallel.claim("w1", ("mail",), 2)
    end(parallel, "w0", wanted=2, after=20)
    parallel.change_limits("mail", {"client:y": "weight=3"})
    parallel.claim("w1", ("mail",), 2)
    parallel.audit("mail")
    parallel.change_limits("mail", {"queue": "fair_by=jobs", "settings:queue": "fair_by=seconds"})
    parallel.claim("w1", ("mail",), 3)
    parallel.change_limits("mail", {"queue": ""})
    parallel.claim("w1", ("mail",), 2)
    end(parallel, "w0")
    parallel.change_limits("mail", {"settings:queue": "", "client:x": "", "client:y": ""})
    end(parallel, "w1")


def all_priorities_share_the_time(parallel: ParallelRun) -> None:
    flood(parallel, BY_TIME, 3)
    send(parallel, *"ab", client="x", priority=5)
    send(parallel, *"cd", client="y", priority=5)
    for ms in (100, 3, 3, 60, 3):
        parallel.claim("w0", ("mail",))
        end(parallel, "w0", str(ms), wanted=2, after=ms)
