"""The command-line options of rtq_worker, as a value."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

_shuffler = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of rtq_worker."""

    queues: Sequence[str]  # in the order of priority
    processes: int = 1
    concurrency: int = 1  # jobs at once in each process
    burst: bool = False  # exit when the queues are empty
    max_jobs: int | None = None  # replace a process after so many jobs
    name: str = field(default_factory=socket.gethostname)
    drain_seconds: float = 25.0  # how long running jobs may continue after the first stop signal
    shuffle: bool = False  # random order of the queues at each claim
    scheduler: bool = True
    backend: str = ""  # in TASKS, whose Redis has the queues
    health_file: str = ""  # touched while the worker lives; "": none

    def order(self) -> Sequence[str]:
        """The queues, in the order for the next claim."""
        if not self.shuffle or len(self.queues) < 2:
            return self.queues
        return _shuffler.sample(self.queues, len(self.queues))


# of rtq_worker
EXIT_OK = 0
EXIT_CANNOT_START = 1  # its processes die before they claim anything
# A second signal: 128 and the number of the signal.

# of a process: the supervisor reads them
EXIT_DONE = 0  # told to stop, or a burst is over
EXIT_RECYCLED = 75  # it has run its share of jobs, or uses too much memory
EXIT_FAILED = 70  # an exception outside of any job
EXIT_FORKED = 70  # the copy of the process that a job made with fork() came back from the job
EXIT_OUT_OF_MEMORY = 137  # a MemoryError; the same code as after the OOM killer
