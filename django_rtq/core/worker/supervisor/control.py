"""Remote control of a supervisor: cancel requests for its jobs, and the commands quiet, work and stop.

1. wait for a control signal: a blocking read in Redis
2. read the cancel requests and the command
3. wake the main thread, which applies them

A control signal may get lost. Requests and commands are stored in Redis, and the heartbeat reads the requests as well.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import time
from collections.abc import Callable

from django_rtq.core.broker.control import WorkerCommand, read_commands
from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.broker.worker_messages import CancelRequests
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.threads import Loop
from django_rtq.core.worker.options import WorkerOptions
from django_rtq.core.worker.supervisor.heartbeat import LiveProcesses
from django_rtq.core.worker.supervisor.process_pool import ChildProcess

logger = logging.getLogger("django_rtq")

MAX_WAIT_SECONDS = 60.0  # between two checks whether the connection leads to the master


class ControlListener(Loop):
    """Reads cancel requests and commands, in its own thread. The supervisor's main thread applies them."""

    name = "control"

    def __init__(
        self, broker: WorkerBroker, options: WorkerOptions, processes: LiveProcesses, wake: Callable[[], None]
    ) -> None:
        super().__init__()
        self.supervisor = f"{options.name}:{os.getpid()}:{secrets.token_hex(4)}"
        self.command: WorkerCommand | None = None
        self._commanded_by, self._commanded_at = "", 0.0  # who sent it, and when it came, on time.monotonic()
        # One for each thread that asks Redis: a late reply to one does not revert what the other has read since.
        self._polled: CancelRequests = {}
        self._from_heartbeat: CancelRequests = {}
        self._broker = broker
        self._queues = options.queues
        self._processes = processes
        self._wake = wake
        self._reader = BlockingReader(
            broker.connection_settings,
            [broker.keys.control_signal(self.supervisor)],
            role="control",
        )

    def tick(self) -> float:
        """Read the command and the cancel requests."""
        workers = [shared.worker for _, shared in self._processes() if shared.worker]
        order, requests = read_commands(self._broker, self.supervisor, self._queues, workers)
        if order is not None and order.command is not self.command:
            self.command, self._commanded_by = order
            self._commanded_at = time.monotonic()
            self._wake()
        self._polled = requests
        if requests:
            self._wake()
        return 0.0

    def info(self) -> dict[str, Argument]:
        """Where to leave commands; for how long the processes have been told to be quiet, and by whom, if they are."""
        info: dict[str, Argument] = {"supervisor_name": self.supervisor}
        if self.command is WorkerCommand.QUIET:
            info["quiet_seconds"] = f"{time.monotonic() - self._commanded_at:.0f}"
            info["quiet_by"] = self._commanded_by
        return info

    def on_cancel_requests(self, requests: CancelRequests) -> None:
        """Take the cancel requests that the heartbeat has read."""
        self._from_heartbeat = requests
        if requests:
            self._wake()

    def wait(self, seconds: float) -> None:
        """Block until a control signal."""
        while not self._stopped.is_set() and not self._reader.wait(MAX_WAIT_SECONDS, is_exact=False):
            pass

    def interrupt(self) -> None:
        """End the blocking read, and so the thread."""
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.close()

    def cancel_jobs(self, process: ChildProcess) -> None:
        """Pass on cancel requests, or kill the process to terminate a job. Repeated: a job may just have started."""
        polled, from_heartbeat = self._polled, self._from_heartbeat
        for job_id in process.shared.running() if polled or from_heartbeat else ():
            job = (process.shared.worker, job_id)
            modes = (polled.get(job), from_heartbeat.get(job))
            if "terminate" in modes and job_id not in process.terminated:
                process.terminated.append(job_id)
                extra = about_jobs([job_id])
                logger.warning("process %d killed: job %s is to be terminated", process.pid, job_id, extra=extra)
                process.kill(signal.SIGKILL)
            elif "ask" in modes and job_id not in process.terminated:
                process.shared.request_cancel(job_id)
                process.kill(signal.SIGUSR1)
