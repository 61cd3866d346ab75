"""How many jobs to claim at once: a batch of very short ones, otherwise one.

Round trips cost far more than short jobs, so short jobs are claimed in batches. But no job may wait for a slow one:
after 5 ms the finished jobs of the batch are acknowledged, and the jobs after the slow one are given back (G2).
The age of the batch is measured, not that of a job: many jobs, none of them slow, may take long together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from django_rtq.exceptions import BrokerError
from django_rtq.threads import ReconnectDelay
from django_rtq.worker.process.session import WorkerSession
from django_rtq.worker.shared_entries import MAX_BATCH
from django_rtq.worker.shared_memory import SharedState

MAX_ACK_DELAY_SECONDS = 0.005  # the longest that a finished job waits to be acknowledged while others run
CHECK_SECONDS = 0.002  # between two checks of the watch thread
MAX_PAUSE_SECONDS = 0.5  # between two tries to settle while Redis is unreachable
MAX_JOBS = MAX_BATCH


class BatchSize:
    """The size of the next batch. Grows while batches take less than 2.5 ms, falls to one after a slow job."""

    def __init__(self) -> None:
        self.jobs = 1

    def update(self, jobs: int, seconds: float, *, slowest: float) -> None:
        """Adjust the size after a batch of so many jobs that took so long."""
        if slowest > MAX_ACK_DELAY_SECONDS or jobs == 0:
            self.jobs = 1
        elif seconds > MAX_ACK_DELAY_SECONDS / 2:
            self.jobs = max(1, int(jobs * MAX_ACK_DELAY_SECONDS / 2 / seconds))
        elif jobs >= self.jobs and seconds < MAX_ACK_DELAY_SECONDS / 4:
            self.jobs = min(MAX_JOBS, self.jobs * 2)


class Batch:
    """The jobs of one claim. One thread takes the next job, another one may cut off the rest."""

    def __init__(self, job_ids: Sequence[bytes], shared: SharedState) -> None:
        self._job_ids = job_ids
        self._shared = shared
        self._lock = threading.Lock()  # also for shared memory: after the end of this batch it is about the next one
        self._end = len(job_ids)
        self._is_over = False
        self.current = -1  # index of the running job
        self.began = time.monotonic()
        shared.start_batch(job_ids)

    def next(self) -> int | None:
        """The index of the next job, or None."""
        with self._lock:
            if self.current + 1 >= self._end:
                self._is_over = True
                return None
            self.current += 1
            return self.current

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
    """A thread that cuts batches that take too long.

    It sleeps without a timer while no batch is running: an idle worker costs no CPU time.
    """

    def __init__(self, session: WorkerSession, release: Callable[[Sequence[bytes]], None]) -> None:
        self._session = session
        self._release = release
        self._batch: Batch | None = None
        self._awake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self, batch: Batch) -> None:
        """Watch this batch."""
        self._batch = batch
        if not self._awake.is_set():
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rtq-batches", daemon=True)
                self._thread.start()
            self._awake.set()

    def end(self) -> None:
        """The batch is over."""
        self._batch = None

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._awake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        pause = threading.Event()
        while not self._stopped:
            self._awake.wait()
            pause.wait(CHECK_SECONDS)
            batch = self._batch  # read once: another thread sets it to None
            if batch is None:
                self._awake.clear()
                if self._batch is not None:  # begin() came in between
                    self._awake.set()
            elif time.monotonic() - batch.began > MAX_ACK_DELAY_SECONDS - CHECK_SECONDS:
                self._cut(batch)

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
        if self._batch is batch:
            self._batch = None
