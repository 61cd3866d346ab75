"""The watchdog of a supervisor: jobs that a process has claimed and cannot start are given back.

1. a job keeps the interpreter lock in the midst of a batch, so that nothing else in its process can run: what was
   finished before it is settled, what was claimed with it and has not started is released
2. a process is frozen while it runs nothing (SIGSTOP, a cgroup freezer, a debugger): all that it has claimed is
   reclaimed, and its lease is not renewed until it shows life again; then it takes a new name

Both are read from the page. What is taken away is marked there first, so that the process does not start it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django_rtq import signals
from django_rtq.broker.broker import Broker
from django_rtq.broker.settlement import Settlement
from django_rtq.loop import Loop
from django_rtq.worker.shared_entries import Mark
from django_rtq.worker.shared_memory import SharedState
from django_rtq.worker.supervisor.finished_jobs import tell_finished
from django_rtq.worker.supervisor.heartbeat import Children

logger = logging.getLogger("django_rtq")

LOOK_SECONDS = 0.5
SLOW_SECONDS = 0.4  # a job that was seen to run for so long is slow: it has run for one look at the least
SETTLE_SECONDS = 0.01  # after that long a process has seen a mark, or we see what it had started before


@dataclass(slots=True)
class _Seen:
    """What was seen of a process so far."""

    looked_at: float
    running: tuple[int, list[str], float] = (0, [], 0.0)  # number of the claim, what of it runs, sign of life
    running_since: float = 0.0
    released: int = 0  # number of the claim whose rest was given back
    alive_at: float = 0.0
    silent_seconds: float = 0.0  # how long we have looked on without a sign of life
    suspect: float = -1.0  # `alive_at` when it was silent for too long, and Redis answered us
    tried: str = ""  # the name whose jobs were to be taken back
    reclaimed: str = ""  # the name whose jobs were taken back


class Watchdog(Loop):
    """Looks at the pages of all children, in its own thread."""

    name = "watchdog"

    def __init__(self, broker: Broker, queues: Sequence[str], children: Children) -> None:
        super().__init__()
        self._broker = broker
        self._queues = queues
        self._children = children
        self._seen: dict[SharedState, _Seen] = {}

    def tick(self) -> float:
        """Look at each child. Redis is asked only when there is something to give back."""
        children = self._children()
        self._seen = {page: self._seen.get(page) or _Seen(time.monotonic()) for _, page in children}
        tell: list[Callable[[], object]] = []
        try:
            for pid, page in children:
                self._look(pid, page, self._seen[page], tell)
        finally:
            for each in tell:
                each()
        return LOOK_SECONDS

    def _look(self, pid: int, page: SharedState, seen: _Seen, tell: list[Callable[[], object]]) -> None:
        now = time.monotonic()
        running = page.number, page.started(), page.alive_at
        if page.is_marked and page.taken is Mark.NOTHING:
            page.take(Mark.NOTHING)  # it has gone on
        if running != seen.running:
            seen.running, seen.running_since = running, now
        elif running[1] and now - seen.running_since >= SLOW_SECONDS and seen.released != page.number:
            self._release_rest(pid, page, seen, tell)
        if page.alive_at != seen.alive_at or page.alive_at == math.inf or running[1]:
            seen.alive_at, seen.silent_seconds = page.alive_at, 0.0
        else:
            seen.silent_seconds += min(now - seen.looked_at, 2 * LOOK_SECONDS)  # we may have been frozen as well
        seen.looked_at = now
        if seen.silent_seconds > self._broker.config.lease_seconds and page.worker not in ("", seen.reclaimed):
            self._reclaim(pid, page, seen, tell)

    # -- a job that keeps the interpreter lock

    def _release_rest(self, pid: int, page: SharedState, seen: _Seen, tell: list[Callable[[], object]]) -> None:
        if page.is_told or not (page.waiting() or page.finished()):
            return
        worker, number = page.worker, page.number
        page.take(Mark.REST, number)
        time.sleep(SETTLE_SECONDS)
        rest, finished = page.waiting(), page.finished()
        if (page.number, page.started(), page.alive_at) != seen.running:
            return
        tell_finished(self._broker, self._queues, worker, finished)
        for queue, attempts in self._broker.attempts(worker, self._queues).items():
            job_ids = [job_id for job_id in rest if job_id.encode() in attempts]
            if job_ids:
                self._broker.settle(worker, queue, Settlement(release=list(job_ids)))
                logger.warning(
                    "process %d: job %s lets nothing else run; %d jobs that were claimed with it are given back",
                    pid, ", ".join(page.started()), len(job_ids),
                )  # fmt: skip
                tell.append(partial(signals.job_released.send_robust, Watchdog, job_ids=job_ids, queue=queue))
        seen.released = number

    # -- a process that is frozen

    def _reclaim(self, pid: int, page: SharedState, seen: _Seen, tell: list[Callable[[], object]]) -> None:
        worker, alive_at = page.worker, seen.alive_at
        if seen.suspect != alive_at:
            # It may have been waiting for a Redis that did not answer: as it answers us, look once more.
            self._broker.attempts(worker, self._queues)
            seen.suspect = alive_at
            return
        page.take(Mark.ALL, page.number)
        time.sleep(SETTLE_SECONDS)
        if page.started() or page.alive_at != alive_at:
            if seen.tried != worker:  # else Redis may have heard of it, though it did not answer
                page.take(Mark.NOTHING)
            return
        seen.tried = worker
        tell_finished(self._broker, self._queues, worker, page.finished())
        for queue in self._queues:
            taken = self._broker.reclaim_child(queue, worker, [])
            if taken:
                tell.append(partial(signals.send_reclaimed, Watchdog, queue, worker, taken))
        seen.reclaimed = worker
        logger.error(
            "process %d of worker %s shows no sign of life for %.1f s and runs nothing: what it claimed is given back",
            pid, worker, seen.silent_seconds,
        )  # fmt: skip
