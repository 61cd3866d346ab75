"""Scenarios: tasks are paused and resumed, while jobs of others go on."""

from django_rtq.core.broker.messages import NewJob
from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import DONE, ERROR, KEEP_MS, run, send, unique_job

CHARGE, MAIL = '{"task":"shop.charge"}', '{"task":"shop.mail","args":[1]}'


def a_task_is_paused(parallel: ParallelRun) -> None:
    first, *_ = send(parallel, *"ab", client="acme", body=CHARGE)
    send(parallel, *"cd", client="acme", body=MAIL)
    send(parallel, "e", client="other", body=CHARGE)
    send(parallel, "f", client="only", body='{"args":[]}')
    send(parallel, "g", client="acme", body=CHARGE, priority=5, claimed=1)
    for _ in range(2):
        parallel.pause_task("mail", "shop.charge", "eve")
        parallel.advance(1)
    parallel.claim("w1", ("mail", "bulk"), 3)
    parallel.find("mail", first)
    for _ in range(2):
        parallel.resume_task("mail", "shop.charge")
    parallel.claim("w1", ("mail",), 9)


def jobs_come_back_in_their_order(parallel: ParallelRun) -> None:
    for place, name in enumerate("abcdef"):
        send(parallel, name, client="acme", body=(CHARGE, MAIL)[place % 2])
        parallel.advance(7)
    send(parallel, "late", client="other", body=CHARGE, due="+1")
    parallel.promote_after(1)
    parallel.pause_task("mail", "shop.charge")
    parallel.claim("w0", ("mail",), 9)
    send(parallel, "later", client="acme", body=CHARGE)
    send(parallel, "mail", client="acme", body=MAIL)
    for _ in range(3):
        parallel.resume_task("mail", "shop.charge", 2)
    for _ in range(5):
        parallel.claim("w0", ("mail",))


def the_scheduler_gives_the_rest_back(parallel: ParallelRun) -> None:
    first, *_ = send(parallel, *"abc", client="acme", body=CHARGE)
    send(parallel, *"de", client="acme", body=MAIL)
    (soon,) = send(parallel, "soon", client="acme", due="+3000")
    for task in ("shop.charge", "shop.mail"):
        parallel.pause_task("mail", task)
    parallel.claim("w0", ("mail",))
    parallel.promote("mail")  # it is not due in a thousand years
    parallel.accidents.take_token("mail", "due_signal")
    parallel.resume_task("mail", "shop.charge", 1)
    parallel.run_now("mail", first)
    for limit in (1, 2):
        parallel.promote("mail", limit)
    parallel.claim("w0", ("mail",), 9)
    for task in ("shop.mail", "shop.charge"):
        parallel.resume_task("mail", task, 1)
    parallel.pause_task("mail", "shop.mail")  # again, before all are back
    parallel.promote("mail")
    parallel.run_now("mail", soon)
    parallel.claim("w0", ("mail",), 9)
    parallel.resume_task("mail", "shop.mail")


def a_client_at_its_limit_waits_since_its_next_job(parallel: ParallelRun) -> None:
    parallel.change_limits("mail", {"clients": "max_running=1"})
    send(parallel, "runs", client="acme", body=MAIL, claimed=1)
    parallel.pause_task("mail", "shop.charge")
    send(parallel, "held", client="acme", body=CHARGE)
    parallel.advance(7)
    send(parallel, "waits", client="acme", body=MAIL, claimed=1)


def weights_and_times_go_by_what_runs(parallel: ParallelRun) -> None:
    for limits in ({"client:acme": "weight=3"}, {"queue": "fair_by=seconds"}):
        parallel.change_limits("mail", limits)
        send(parallel, *"abxy", client="acme", body=CHARGE)
        send(parallel, *"cd", client="acme", body=MAIL)
        send(parallel, "e", client="acme", body=CHARGE)
        send(parallel, "e2", client="acme", body=MAIL)
        send(parallel, *"fg", client="other", body=CHARGE)
        send(parallel, *"hi", client="third", body=MAIL)
        parallel.pause_task("mail", "shop.charge")
        parallel.claim("w0", ("mail",), 4)
        parallel.claim("w1", ("mail",), 4)
        parallel.resume_task("mail", "shop.charge")
        parallel.claim("w1", ("mail",), 9)


def held_jobs_are_cancelled_and_purged(parallel: ParallelRun) -> None:
    ids = send(parallel, *"abcd", client="acme", body=CHARGE)
    send(parallel, *"ef", client="other", body=CHARGE)
    send(parallel, *"gh", client="acme", body=MAIL)
    parallel.cancel("mail", ids[1])
    parallel.pause_task("mail", "shop.charge")
    parallel.claim("w0", ("mail",), 5)
    parallel.cancel("mail", ids[0])
    for job_id in (ids[2], ids[2]):
        parallel.run_now("mail", job_id)
    parallel.cancel("mail", ids[2])
    parallel.forget("mail")
    parallel.purge("mail", 1)
    parallel.resume_task("mail", "shop.charge", 1)
    parallel.run_now("mail", ids[3])
    parallel.claim("w0", ("mail",), 5)


def unique_jobs_of_a_paused_task(parallel: ParallelRun) -> None:
    def unique(name: str, conflict: str) -> NewJob:
        return unique_job(parallel, name, conflict=conflict, client="acme", body=CHARGE)

    parallel.enqueue("mail", [unique("a", "return")])
    parallel.pause_task("mail", "shop.charge")
    parallel.claim("w0", ("mail",))
    for place, conflict in enumerate(("return", "rerun", "replace")):
        parallel.enqueue("mail", [unique(f"again{place}", conflict)])
        parallel.claim("w0", ("mail",))
    parallel.resume_task("mail", "shop.charge")
    parallel.claim("w0", ("mail",))
    parallel.enqueue("mail", [unique("after", "rerun")])  # it waits for the end of the one that runs
    parallel.pause_task("mail", "shop.charge")
    running = [job_id for job_id in parallel.models["mail"].running["w0"]]
    run(parallel, "ack", running, KEEP_MS, DONE)
    parallel.promote("mail")
    parallel.claim("w0", ("mail",))


def what_fails_and_crashes_is_held(parallel: ParallelRun) -> None:
    fails, crashes, back = send(parallel, *"abc", client="acme", body=CHARGE, max_crashes=3, claimed=3)
    parallel.pause_task("mail", "shop.charge")
    run(parallel, "retry", [fails], 3000, 1, ERROR)
    run(parallel, "release", [back])
    parallel.reclaim_child("mail", "w0", [crashes])
    send(parallel, "d", client="acme", body=MAIL)
    parallel.claim("w1", ("mail",), 3)
    parallel.promote_after(3000)
    parallel.claim("w1", ("mail",), 3)
    for job_id in (fails, crashes, back):
        parallel.find("mail", job_id)
    parallel.resume_task("mail", "shop.charge")
    parallel.claim("w1", ("mail",), 3)
