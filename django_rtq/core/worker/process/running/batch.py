"""How many jobs to claim at once: a batch of very short ones, two short ones, otherwise one.

Round trips cost far more than short jobs, so jobs are claimed before they can run. But no job may wait for a slow one:

- A batch of three or more is cut after 5 ms. Its age is measured, not that of a job: many jobs, none of them slow, may
  take long together.
- Two jobs: the second waits while the first runs, then the outcome of the first while the second runs; each for 20 ms
  at most (D95). Then the batch is cut, too.

To cut a batch: acknowledge its finished jobs, and give back those that have not started (G2).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

from django_rtq.core.threads import BinarySemaphore, ReconnectDelay
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.shared_memory import MAX_BATCH, SharedState
from django_rtq.exceptions import BrokerError

MAX_ACK_DELAY_SECONDS = 0.005  # the longest that a finished job of a batch waits to be acknowledged while others run
MAX_AHEAD_SECONDS = 0.02  # the longest that one of two jobs, or its outcome, waits while the other one runs
CHECK_SECONDS = 0.002  # from the begin of a batch until the watch thread looks
CUT_AT = 0.8  # of these times: the round trip takes the rest
MAX_PAUSE_SECONDS = 0.5  # between two tries to settle while Redis is unreachable
MAX_JOBS = MAX_BATCH
BUSY_CLAIMS = 4  # so many in a row find what they want before two jobs are claimed: an idle worker could run one
MEAN_RUNS = 16  # the mean of run times is about as many runs
MEAN_LIMIT_SECONDS = 0.05  # longer runs count as these


class ClaimAhead:
    """How many jobs to claim before there are slots for them (D95): while jobs are short, as many as there are
    slots. Then a slot takes its next job at once, instead of waiting for a round trip.
    """

    def __init__(self, slots: int, longest_seconds: float) -> None:
        self._slots = slots
        self._longest_seconds = longest_seconds  # of the mean
        self._mean_seconds = MEAN_LIMIT_SECONDS  # of the last runs, those before them count less and less
        self._runs = 0  # in it, up to MEAN_RUNS

    @property
    def jobs(self) -> int:
        """As many as there are slots, or none."""
        return self._slots if self._mean_seconds < self._longest_seconds else 0

    def update(self, seconds: float) -> None:
        """A run took so long."""
        self._runs = min(self._runs + 1, MEAN_RUNS)
        self._mean_seconds += (min(seconds, MEAN_LIMIT_SECONDS) - self._mean_seconds) / self._runs

    def stop(self) -> None:
        """Claim none until many jobs were short: those that run now are not."""
        self._mean_seconds, self._runs = MEAN_LIMIT_SECONDS, MEAN_RUNS


class BatchSize:
    """The size of the next batch. Grows while batches take less than 2.5 ms. Falls after a slow job: to two while jobs
    are short and enough of them wait, else to one.
    """

    def __init__(self) -> None:
        self.jobs = 1
        self._ahead = ClaimAhead(1, MAX_AHEAD_SECONDS / 2)
        self._busy_claims = 0

    def note_claim(self, found: int) -> None:
        """A claim has found so many jobs."""
        self._busy_claims = self._busy_claims + 1 if found >= self.jobs else 0

    def update(self, jobs: int, seconds: float, *, slowest: float, is_cut: bool = False) -> None:
        """Adjust the size after a batch of so many jobs that took so long. `is_cut`: others were given back."""
        if slowest > MAX_ACK_DELAY_SECONDS or jobs == 0:
            self.jobs = 1
        elif seconds > MAX_ACK_DELAY_SECONDS / 2:
            self.jobs = max(1, int(jobs * MAX_ACK_DELAY_SECONDS / 2 / seconds))
        elif jobs >= self.jobs and seconds < MAX_ACK_DELAY_SECONDS / 4:
            self.jobs = min(MAX_JOBS, self.jobs * 2)
        if is_cut:
            self._ahead.stop()
        elif jobs:
            self._ahead.update(seconds / jobs)
        if self.jobs == 1 and self._busy_claims >= BUSY_CLAIMS:
            self.jobs += self._ahead.jobs


class Batch:
    """The jobs of one claim. One thread takes the next job, another one may cut off the rest."""

    def __init__(self, job_ids: Sequence[bytes], shared: SharedState) -> None:
        self._job_ids = job_ids
        self._shared = shared
        self._lock = threading.Lock()  # also for shared memory: after the end of this batch it is about the next one
        self._end = len(job_ids)
        self._is_over = False
        self._is_pair = len(job_ids) == 2
        self.current = -1  # index of the running job
        self.due = time.monotonic() + CUT_AT * (MAX_AHEAD_SECONDS if self._is_pair else MAX_ACK_DELAY_SECONDS)  # to cut
        shared.start_batch(job_ids)

    def next(self) -> int | None:
        """The index of the next job, or None."""
        with self._lock:
            if self.current + 1 >= self._end:
                self._is_over = True
                return None
            self.current += 1
            if self._is_pair and self.current:
                self.due = time.monotonic() + CUT_AT * MAX_AHEAD_SECONDS
            return self.current

    def end(self) -> Sequence[bytes]:
        """No job is running any more. Returns the jobs that have not started."""
        with self._lock:
            self._is_over = True
            return self._job_ids[self.current + 1 : self._end]

    def cut(self) -> Sequence[bytes]:
        """End the batch with the running job. Returns the jobs that have not started."""
        with self._lock:
            rest = self._job_ids[self.current + 1 : self._end]
            self._end = self.current + 1
            if rest:
                self._shared.release_from(self._end)
            return rest

    def mark_reported(self) -> None:
        """Redis has the outcomes of all but the running job."""
        with self._lock:
            if not self._is_over:
                self._shared.mark_reported()


class BatchWatch:
    """A thread that cuts batches when they are due.

    It sleeps without a timer while no batch is running: an idle worker costs no CPU time.
    """

    def __init__(self, session: WorkerSession, release: Callable[[Sequence[bytes]], None]) -> None:
        self._session = session
        self._release = release
        self._batch: Batch | None = None
        self._change = BinarySemaphore()  # wakes the thread
        self._wakes_at = math.inf  # when it wakes by itself
        self._is_hurried = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self, batch: Batch) -> None:
        """Watch this batch."""
        self._batch = batch
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rtq-batches", daemon=True)
            self._thread.start()
        if batch.due < self._wakes_at:
            self._change.release()

    def end(self) -> None:
        """The batch is over."""
        self._batch = None

    def hurry(self) -> None:
        """Cut the batch now, if there is one. May be called in a signal handler."""
        self._is_hurried = True
        self._change.release()

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._change.release()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        cut: Batch | None = None  # the last one
        while not self._stopped:
            self._wakes_at = math.inf  # begin() wakes this thread from here on
            is_hurried, self._is_hurried = self._is_hurried, False
            batch, now = self._batch, time.monotonic()  # read once: another thread sets it to None
            if batch is None or batch is cut:
                self._change.acquire()
                # Look later: waiting for the interpreter lock during each batch would cut some that are not slow.
                self._wakes_at = time.monotonic() + CHECK_SECONDS
                self._change.acquire(CHECK_SECONDS)
            elif is_hurried or batch.due <= now:
                self._cut(batch)
                cut = batch
            else:
                self._wakes_at = batch.due
                if self._batch is batch:  # else begin() could not see yet when this thread wakes
                    self._change.acquire(batch.due - now)

    def _cut(self, batch: Batch) -> None:
        self._release(batch.cut())
        backoff = ReconnectDelay(MAX_PAUSE_SECONDS)
        while self._batch is batch and not self._stopped:  # else the next claim settles it
            try:
                self._session.settle()
            except BrokerError:
                time.sleep(backoff.next_seconds())  # keep trying: the slow job may take hours
            else:
                batch.mark_reported()
                break
