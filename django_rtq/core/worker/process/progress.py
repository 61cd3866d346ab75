"""Writes the progress that jobs report to Redis, in the background: a loop of a million steps must not wait for Redis.

It writes the latest report of each job. Skipping calls that come too soon would lose the last one before a long step.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping

from django_rtq.exceptions import BrokerError

PAUSE_SECONDS = 0.5  # between two writes, whatever the number of jobs

ProgressReports = Mapping[tuple[str, str, str], str]  # worker, queue, job id -> progress as JSON


class ProgressWriter:
    """Keeps the last report of each job, and writes it in its own thread, which starts with the first report.

    Later reports take no lock: a time limit may raise an exception there at any bytecode, and leave it locked.
    """

    def __init__(self, write: Callable[[ProgressReports], None], backend: str = "") -> None:
        self._write = write
        self.backend = backend  # in TASKS, whose Redis has the jobs
        self._latest: dict[tuple[str, str, str], str] = {}
        self._events: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True: there are reports; False: stop
        self._is_signalled = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def report(self, worker: str, queue_name: str, job_id: str, line: str) -> None:
        """Take the progress of a job. Any thread."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="rtq-progress", daemon=True)
                    self._thread.start()
        self._latest[worker, queue_name, job_id] = line
        if not self._is_signalled:
            self._is_signalled = True
            self._events.put(True)

    def stop(self) -> None:
        """End the thread. Reports that were not written yet are dropped."""
        self._stopped.set()
        self._events.put(False)
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while self._events.get() and not self._stopped.is_set():
            self._is_signalled = False  # first: a report that comes meanwhile signals again
            reports = {}
            while self._latest:
                key, line = self._latest.popitem()
                reports[key] = line
            try:
                self._write(reports)
            except BrokerError:
                for key, line in reports.items():  # try again, unless there is a newer one
                    self._latest.setdefault(key, line)
                self._events.put(True)
            self._stopped.wait(PAUSE_SECONDS)
