"""The errands of a supervisor: what people want of its jobs and of itself.

1. wait for a token
2. ask what is wanted: which jobs are to stop, and whether to be quiet or to leave
3. wake the main thread, which carries it out

A token may get lost. What is wanted stands in Redis, and the heartbeat asks for it as well.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence

from django_rtq.broker.asked import Asked
from django_rtq.broker.broker import Broker
from django_rtq.broker.errands import Order, read_errands
from django_rtq.broker.waiter import Waiter
from django_rtq.loop import Loop
from django_rtq.worker.heartbeat import Children
from django_rtq.worker.nursery import ChildProcess
from django_rtq.worker.options import WorkerOptions

logger = logging.getLogger("django_rtq")

LONGEST_WAIT_SECONDS = 60.0


class Errands(Loop):
    """Hears what people want, in its own thread. The supervisor's main thread carries it out."""

    name = "errands"

    def __init__(self, broker: Broker, options: WorkerOptions, children: Children, wake: Callable[[], None]) -> None:
        super().__init__()
        self.supervisor = f"{options.name}:{os.getpid()}:{secrets.token_hex(4)}"
        self.order: Order | None = None
        self._wishes: Mapping[tuple[str, str], str] = {}  # worker and job -> how it is to stop
        self._broker = broker
        self._queues = options.queues
        self._children = children
        self._wake = wake
        self._waiter = Waiter(
            broker.recipe,
            [broker.keys.errands(self.supervisor)],
            role="errands",
            longest_seconds=LONGEST_WAIT_SECONDS,
        )

    def tick(self) -> float:
        """Ask what is wanted."""
        workers = [page.worker for _, page in self._children() if page.worker]
        order, asked = read_errands(self._broker, self.supervisor, self._queues, workers)
        if order is not None and order is not self.order:
            self.order = order
            self._wake()
        self.note(asked)
        return 0.0

    def note(self, asked: Sequence[Asked]) -> None:
        """These jobs are to stop. Called by the heartbeat as well."""
        self._wishes = {(worker, job_id): how for worker, job_id, how in asked}
        if asked:
            self._wake()

    def wait(self, seconds: float) -> None:
        """Until there is a token. After a while without one the connection is only seen to be alive."""
        while not self._stopped.is_set() and not self._waiter.wait():
            pass

    def interrupt(self) -> None:
        """The blocking read ends, and with it the thread."""
        self._waiter.interrupt()

    def stop_jobs(self, child: ChildProcess) -> None:
        """Tell a child which of its jobs are to stop, or kill it. Again and again, for a job may just have begun."""
        wishes = self._wishes
        for job_id in child.page.started() if wishes else ():
            how = wishes.get((child.page.worker, job_id))
            if how == "terminate" and job_id not in child.terminated:
                child.terminated.append(job_id)
                logger.warning("process %d is killed: job %s is to be terminated", child.pid, job_id)
                child.kill(signal.SIGKILL)
            elif how == "ask":
                child.page.ask_to_stop(job_id)
                child.kill(signal.SIGUSR1)
