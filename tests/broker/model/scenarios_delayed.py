"""Stories of jobs that waited for their time in a queue that serves these first."""

from __future__ import annotations

from tests.broker.model.parallel_run import Twins
from tests.broker.model.scenarios import ERROR, new_job, send


def jobs_that_waited_go_first(twins: Twins) -> None:
    """In a queue that says so: ahead of their band's other work, by turns among themselves."""
    waited = send(twins, *"abc", queue="bulk", client="x", due="+1000")
    waited += send(twins, "d", queue="bulk", client="y", due="+1000")
    send(twins, "e", queue="bulk", priority=-5, due="+1000")
    others = send(twins, "f", "g", queue="bulk", client="x")
    send(twins, "urgent", queue="bulk", priority=1)
    twins.advance(1000)
    twins.promote("bulk", 2)
    twins.promote("bulk")
    twins.claim("w0", ("bulk",), 3)
    twins.fetch("w0", {"bulk": {"release": [(waited[0],)], "retry": [(waited[3], 1000, 1, ERROR)]}})
    twins.claim("w1", ("bulk",), 2)
    twins.reclaim_child("bulk", "w1", waited[:1])
    twins.advance(1000)
    twins.promote("bulk")
    twins.cancel("bulk", waited[3])
    twins.audit("bulk")
    twins.sign_on("w2")
    twins.claim("w2", ("bulk",), 2)
    twins.fetch("w2", {"bulk": {"bury": [(waited[0], 1, ERROR)]}})
    twins.requeue("bulk", waited[:1])
    twins.find("bulk", waited[0])
    twins.find("bulk", others[0])
    for _ in range(6):
        twins.claim("w2", ("bulk",), 2)


def clients_of_a_crowd_take_turns(twins: Twins) -> None:
    """As long as more is due than a call promotes, and a part goes by its time."""
    flood = [f"f{n}" for n in range(24)]
    send(twins, *flood, client="flood", due="+1000")
    send(twins, "a", "b", client="single", due="+1001")
    for name, due in (("c", "+1002"), ("d", "+3000")):
        send(twins, name, client="other", due=due)
    twins.advance(1001)
    twins.promote("mail", 4)
    twins.promote("mail", 4)
    twins.advance(1)
    twins.promote("mail", 8)
    send(twins, *"ghij", client="flood", due="+1")
    twins.advance(1)
    for limit in (1, 2, 2, 4, 4):
        twins.promote("mail", limit)


def many_crowds_take_turns(twins: Twins) -> None:
    """There are more clients than a call has places: who was served comes after the others."""
    for n in range(8):
        send(twins, *(f"{client}{n}" for client in "abcdefgh"), client="abcdefgh"[n], due="+1000")
    twins.advance(1000)
    for _ in range(4):
        twins.promote("mail", 4)
        twins.advance(1)
    send(twins, "late", client="late", due="+1")
    twins.advance(1)
    for limit in (2, 4, 8):
        twins.promote("mail", limit)
        twins.promote("mail", limit)


def what_waits_no_more_leaves_the_index(twins: Twins) -> None:
    ids = [job_id for name in "abc" for job_id in send(twins, name, client="x", due="+2000")]
    now = twins.clock.now
    twins.take_token("mail", "due_signal")
    twins.enqueue("mail", [new_job(twins, n, client="x", due=str(now + ms)) for n, ms in (("d", 1000), ("e", 9000))])
    twins.cancel("mail", ids[0])
    twins.run_now("mail", ids[1])
    twins.bend_index("mail", "nobody")
    twins.bend_index("mail", "x")
    twins.advance(1000)
    twins.bend_index("mail", "x")
    twins.cancel("mail", ids[2])
    twins.purge("mail")
    (alone,) = send(twins, "f", client="x", due="+1000")
    (ahead,) = send(twins, "g", client="y", due="+1000")
    twins.cancel("mail", alone)
    twins.run_now("mail", ahead)
    twins.claim("w0", ("mail",), 9)
    twins.fetch("w0", {"mail": {"retry": [(job_id, 2000, 1, ERROR) for job_id in twins.models["mail"].running["w0"]]}})
    twins.advance(2000)
    for _ in range(4):
        twins.promote("mail", 2)


DELAYED_STORIES = (
    jobs_that_waited_go_first,
    clients_of_a_crowd_take_turns,
    many_crowds_take_turns,
    what_waits_no_more_leaves_the_index,
)
