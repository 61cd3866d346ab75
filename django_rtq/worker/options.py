"""What a worker is told on its command line."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

_shuffler = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of rtq_worker."""

    queues: Sequence[str]  # in the order in which they are served
    processes: int = 1
    concurrency: int = 1  # jobs at once in each process
    burst: bool = False  # work until the queues are empty, then leave
    max_jobs: int | None = None  # a process is replaced after so many
    name: str = field(default_factory=socket.gethostname)
    drain_seconds: float = 25.0  # how long running jobs may go on after the first signal
    shuffle: bool = False  # another order of queues at each claim
    scheduler: bool = True

    def order(self) -> Sequence[str]:
        """The queues as the next claim has to serve them."""
        if not self.shuffle or len(self.queues) < 2:
            return self.queues
        return _shuffler.sample(self.queues, len(self.queues))
