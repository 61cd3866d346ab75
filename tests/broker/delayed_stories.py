"""Stories of jobs that waited for their time in a queue that serves these first."""

from __future__ import annotations

from tests.broker.stories import ERROR, send
from tests.broker.twins import Twins


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


DELAYED_STORIES = (jobs_that_waited_go_first,)
