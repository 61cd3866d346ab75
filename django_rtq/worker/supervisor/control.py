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

from django_rtq.broker.broker import Broker
from django_rtq.broker.control import WorkerCommand, read_commands
from django_rtq.broker.messages import CancelRequest
from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.loop import Loop
from django_rtq.worker.options import WorkerOptions
from django_rtq.worker.supervisor.heartbeat import Children
from django_rtq.worker.supervisor.process_pool import ChildProcess

logger = logging.getLogger("django_rtq")

LONGEST_WAIT_SECONDS = 60.0

Wishes = Mapping[tuple[str, str], str]


class ControlListener(Loop):
    """Hears what people want, in its own thread. The supervisor's main thread carries it out."""

    name = "control"

    def __init__(self, broker: Broker, options: WorkerOptions, children: Children, wake: Callable[[], None]) -> None:
        super().__init__()
        self.supervisor = f"{options.name}:{os.getpid()}:{secrets.token_hex(4)}"
        self.order: WorkerCommand | None = None
        # Worker and job -> how it is to stop. Of each thread that asks its own: an answer that came late takes back
        # nothing that the other has heard since.
        self._found: Wishes = {}
        self._told: Wishes = {}
        self._broker = broker
        self._queues = options.queues
        self._children = children
        self._wake = wake
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.control_signal(self.supervisor)],
            role="control",
            block_seconds=LONGEST_WAIT_SECONDS,
        )

    def tick(self) -> float:
        """Ask what is wanted."""
        workers = [page.worker for _, page in self._children() if page.worker]
        order, asked = read_commands(self._broker, self.supervisor, self._queues, workers)
        if order is not None and order is not self.order:
            self.order = order
            self._wake()
        self._found = self._note(asked)
        return 0.0

    def tell(self, asked: Sequence[CancelRequest]) -> None:
        """These jobs are to stop, the heartbeat says."""
        self._told = self._note(asked)

    def _note(self, asked: Sequence[CancelRequest]) -> Wishes:
        if asked:
            self._wake()
        return {(worker, job_id): how for worker, job_id, how in asked}

    def wait(self, seconds: float) -> None:
        """Until there is a token. After a while without one the connection is only seen to be alive."""
        while not self._stopped.is_set() and not self._reader.wait():
            pass

    def interrupt(self) -> None:
        """The blocking read ends, and with it the thread."""
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.close()

    def stop_jobs(self, child: ChildProcess) -> None:
        """Tell a child which of its jobs are to stop, or kill it. Again and again, for a job may just have begun."""
        found, told = self._found, self._told
        for job_id in child.page.started() if found or told else ():
            job = (child.page.worker, job_id)
            hows = (found.get(job), told.get(job))
            if "terminate" in hows and job_id not in child.terminated:
                child.terminated.append(job_id)
                logger.warning("process %d is killed: job %s is to be terminated", child.pid, job_id)
                child.kill(signal.SIGKILL)
            elif "ask" in hows and job_id not in child.terminated:
                child.page.ask_to_stop(job_id)
                child.kill(signal.SIGUSR1)
