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
    health_file: str = ""  # touched while all is well; "": none

    def order(self) -> Sequence[str]:
        """The queues, in the order for the next claim."""
        if not self.shuffle or len(self.queues) < 2:
            return self.queues
        return _shuffler.sample(self.queues, len(self.queues))
