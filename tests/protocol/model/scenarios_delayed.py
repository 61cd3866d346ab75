"""Scenarios: delayed jobs in a queue that runs due jobs first."""

from tests.protocol.model.parallel_run import ParallelRun
from tests.protocol.model.scenarios import ERROR, new_job, send


def jobs_that_waited_go_first(parallel: ParallelRun) -> None:
    """In a queue that says so: ahead of their band's other work, by turns among themselves."""
    waited = send(parallel, *"abc", queue="bulk", client="x", due="+1000")
    waited += send(parallel, "d", queue="bulk", client="y", due="+1000")
    send(parallel, "e", queue="bulk", priority=-5, due="+1000")
    others = send(parallel, "f", "g", queue="bulk", client="x")
    send(parallel, "urgent", queue="bulk", priority=1)
    parallel.advance(1000)
    parallel.promote("bulk", 2)
    parallel.promote("bulk")
    parallel.claim("w0", ("bulk",), 3)
    parallel.fetch("w0", {"bulk": {"release": [(waited[0],)], "retry": [(waited[3], 1000, 1, ERROR)]}})
    parallel.claim("w1", ("bulk",), 2)
    parallel.reclaim_child("bulk", "w1", waited[:1])
    parallel.advance(1000)
    parallel.promote("bulk")
    parallel.cancel("bulk", waited[3])
    parallel.audit("bulk")
    parallel.sign_on("w2")
    parallel.claim("w2", ("bulk",), 2)
    parallel.fetch("w2", {"bulk": {"bury": [(waited[0], 1, ERROR)]}})
    parallel.requeue("bulk", waited[:1])
    parallel.find("bulk", waited[0])
    parallel.find("bulk", others[0])
    for _ in range(6):
        parallel.claim("w2", ("bulk",), 2)


def clients_of_many_due_jobs_take_turns(parallel: ParallelRun) -> None:
    """As long as more is due than a call promotes, and a part goes by its time."""
    flood = [f"f{n}" for n in range(24)]
    send(parallel, *flood, client="flood", due="+1000")
    send(parallel, "a", "b", client="single", due="+1001")
    for name, due in (("c", "+1002"), ("d", "+3000")):
        send(parallel, name, client="other", due=due)
    parallel.promote_after(1001, 4)
    parallel.promote("mail", 4)
    parallel.promote_after(1, 8)
    send(parallel, *"ghij", client="flood", due="+1")
    parallel.advance(1)
    for limit in (1, 2, 2, 4, 4):
        parallel.promote("mail", limit)


def many_due_batches_take_turns(parallel: ParallelRun) -> None:
    """There are more clients than a call has places: who was served comes after the others."""
    for n in range(8):
        send(parallel, *(f"{client}{n}" for client in "abcdefgh"), client="abcdefgh"[n], due="+1000")
    parallel.advance(1000)
    for _ in range(4):
        parallel.promote("mail", 4)
        parallel.advance(1)
    send(parallel, "late", client="late", due="+1")
    parallel.advance(1)
    for limit in (2, 4, 8):
        parallel.promote("mail", limit)
        parallel.promote("mail", limit)


def what_waits_no_more_leaves_the_index(parallel: ParallelRun) -> None:
    ids = [job_id for name in "abc" for job_id in send(parallel, name, client="x", due="+2000")]
    now = parallel.clock.now
    parallel.accidents.take_token("mail", "due_signal")
    parallel.enqueue(
        "mail", [new_job(parallel, n, client="x", due=str(now + ms)) for n, ms in (("d", 1000), ("e", 9000))]
    )
    parallel.cancel("mail", ids[0])
    parallel.run_now("mail", ids[1])
    parallel.accidents.bend_index("mail", "nobody")
    parallel.accidents.bend_index("mail", "x")
    parallel.advance(1000)
    parallel.accidents.bend_index("mail", "x")
    parallel.cancel("mail", ids[2])
    parallel.purge("mail")
    (alone,) = send(parallel, "f", client="x", due="+1000")
    (ahead,) = send(parallel, "g", client="y", due="+1000")
    parallel.cancel("mail", alone)
    parallel.run_now("mail", ahead)
    parallel.claim("w0", ("mail",), 9)
    parallel.fetch(
        "w0", {"mail": {"retry": [(job_id, 2000, 1, ERROR) for job_id in parallel.models["mail"].running["w0"]]}}
    )
    parallel.advance(2000)
    for _ in range(4):
        parallel.promote("mail", 2)
