"""The watchdog of a supervisor: gives back jobs that a process has claimed and cannot start.

1. A job holds the interpreter lock (GIL) in the middle of a batch, so nothing else runs in its process: the jobs that
   were finished before it are settled, and the jobs of the batch that have not started are released.
2. A process is frozen while it runs no job (SIGSTOP, a cgroup freezer, a debugger): all its jobs are reclaimed, and its
   lease is not renewed until it runs again. Then it takes a new name.

Both are read from shared memory. The supervisor first marks jobs there as revoked, so that the process cannot start
them any more.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django_rtq.core import signals
from django_rtq.core.broker.settlement import released
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.jobs.job import about_jobs
from django_rtq.core.threads import Loop
from django_rtq.core.worker.shared_memory import Revoked, SharedState
from django_rtq.core.worker.supervisor.crash_recovery import settle_finished
from django_rtq.core.worker.supervisor.heartbeat import LiveProcesses

logger = logging.getLogger("django_rtq")

CHECK_SECONDS = 0.5
IDLE_CHECK_SECONDS = 2.0  # the same while no job runs: the main thread wakes the watchdog when one does
ALIVE_CHECK_SECONDS = 6.0  # the same while all processes give signs of life as well, every 5 seconds or more often
SLOW_SECONDS = 0.4  # a job is slow when it has run for so long: at least since the last check
VISIBLE_SECONDS = 0.01  # after so long the process sees a revocation, or we see what it had started before


@dataclass(slots=True)
class _Observed:
    """What was observed of a process so far."""

    checked_at: float
    running: tuple[int, list[str], float] = (0, [], 0.0)  # number of the claim, running jobs, sign of life
    running_since: float = 0.0
    released: int = 0  # number of the claim whose rest was released
    in_doubt: str = ""  # the worker name for which Redis may still execute a release
    alive_at: float = 0.0
    silent_seconds: float = 0.0  # how long we have observed no sign of life
    suspect: float = -1.0  # `alive_at` when it was silent for too long and we could reach Redis
    reclaim_tried: str = ""  # the worker name that we tried to reclaim
    reclaimed: str = ""  # the worker name whose jobs were reclaimed


class Watchdog(Loop):
    """Checks the shared memory of all processes, in its own thread."""

    name = "watchdog"

    def __init__(self, broker: WorkerBroker, queues: Sequence[str], processes: LiveProcesses) -> None:
        super().__init__()
        self._broker = broker
        self._queues = queues
        self._processes = processes
        self._observed: dict[SharedState, _Observed] = {}
        lease = broker.config.lease_seconds
        self._idle_seconds = max(CHECK_SECONDS, min(IDLE_CHECK_SECONDS, lease / 8))
        self._alive_seconds = max(CHECK_SECONDS, min(ALIVE_CHECK_SECONDS, lease * 0.4))
        self.interval = CHECK_SECONDS  # until the next check
        self._unsent: list[Callable[[], object]] = []  # signals, when all processes are checked

    def wake_if_busy(self) -> None:
        """Check now if a job runs and the last check saw none. For the main thread, every CHECK_SECONDS."""
        if self.interval > CHECK_SECONDS and any(shared.is_running for _, shared in self._processes()):
            self.interrupt()

    def tick(self) -> float:
        """Check each process. Redis is needed only when there is something to give back."""
        processes = self._processes()
        self._observed = {shared: self._observed.get(shared) or _Observed(time.monotonic()) for _, shared in processes}
        try:
            for pid, shared in processes:
                self._check(pid, shared, self._observed[shared])
        finally:
            send_now, self._unsent = self._unsent, []
            for send in send_now:
                send()
        if any(observed.running[1] for observed in self._observed.values()):
            self.interval = CHECK_SECONDS
        elif any(observed.silent_seconds >= self._alive_seconds for observed in self._observed.values()):
            self.interval = self._idle_seconds
        else:
            self.interval = self._alive_seconds
        return self.interval

    def _check(self, pid: int, shared: SharedState, observed: _Observed) -> None:
        now = time.monotonic()
        running = shared.claim_number, shared.running(), shared.alive_at
        is_over = shared.revoked is Revoked.NOTHING and shared.worker != observed.in_doubt
        if shared.has_revocation and is_over:
            shared.revoke(Revoked.NOTHING)  # the mark was about an earlier claim or name
        if running != observed.running:
            observed.running, observed.running_since = running, now
        elif running[1] and now - observed.running_since >= SLOW_SECONDS and observed.released != shared.claim_number:
            self._release_rest(pid, shared, observed)
        if self._is_frozen(shared, observed, now) and shared.worker not in ("", observed.reclaimed):
            self._reclaim(pid, shared, observed)

    def _is_frozen(self, shared: SharedState, observed: _Observed, now: float) -> bool:
        """Whether a process that runs no job has given no sign of life for a lease."""
        alive_at, silent_since = shared.alive_at, observed.checked_at
        if alive_at != observed.alive_at or alive_at == math.inf or observed.running[1]:
            silent_since = now if alive_at == math.inf or observed.running[1] else alive_at
            observed.alive_at, observed.silent_seconds = alive_at, 0.0
        # Limited, because this process may have been frozen as well.
        observed.silent_seconds += min(now - silent_since, 2 * self.interval)
        observed.checked_at = now
        return observed.silent_seconds > self._broker.config.lease_seconds

    # -- a job that holds the interpreter lock

    def _release_rest(self, pid: int, shared: SharedState, observed: _Observed) -> None:
        if shared.is_reported or not (shared.waiting() or shared.finished()):
            return
        worker, number = shared.worker, shared.claim_number
        shared.revoke(Revoked.REST, number)
        time.sleep(VISIBLE_SECONDS)
        rest, finished = shared.waiting(), shared.finished()
        if (shared.claim_number, shared.running(), shared.alive_at) != observed.running:
            return
        settle_finished(self._broker, self._queues, worker, finished)
        for queue, attempts in self._broker.attempts(worker, self._queues).items():
            job_ids = [job_id for job_id in rest if job_id.encode() in attempts]
            if job_ids:
                observed.in_doubt = worker
                self._broker.settle(worker, queue, released(job_ids))
                observed.in_doubt = ""
                logger.warning(
                    "process %d: job %s blocks the process; jobs that were claimed with it and are given back: %d",
                    pid, ", ".join(shared.running()), len(job_ids), extra=about_jobs(shared.running(), queue=queue),
                )  # fmt: skip
                self._unsent.append(partial(signals.job_released.send_robust, Watchdog, job_ids=job_ids, queue=queue))
        observed.released = number

    # -- a process that is frozen

    def _reclaim(self, pid: int, shared: SharedState, observed: _Observed) -> None:
        worker, alive_at = shared.worker, observed.alive_at
        if observed.suspect != alive_at:
            # It may have been waiting for Redis. Check again, now that Redis has replied to us.
            self._broker.attempts(worker, self._queues)
            observed.suspect = alive_at
            return
        shared.revoke(Revoked.ALL, shared.claim_number)
        time.sleep(VISIBLE_SECONDS)
        if shared.running() or shared.alive_at != alive_at:
            if observed.reclaim_tried != worker:  # else Redis may have got the reclaim, though the reply was lost
                shared.revoke(Revoked.NOTHING)
            return
        observed.reclaim_tried = worker
        settle_finished(self._broker, self._queues, worker, shared.finished())
        for queue in self._queues:
            taken = self._broker.reclaim_child(queue, worker, [])
            if taken:
                self._unsent.append(partial(signals.send_reclaimed, Watchdog, queue, worker, taken))
        observed.reclaimed = worker
        logger.error(
            "process %d of worker %s is frozen: no sign of life for %.1f s, no running job; its jobs are given back",
            pid, worker, observed.silent_seconds,
        )  # fmt: skip
