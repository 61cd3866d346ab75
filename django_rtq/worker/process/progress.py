"""What jobs say of themselves while they run, written down now and then."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping

from django_rtq.exceptions import BrokerError

PAUSE_SECONDS = 0.5  # between two writes, of whatever number of jobs

ProgressReports = Mapping[tuple[str, str, str], str]  # worker, queue and id of a job -> how far it is, JSON


class ProgressWriter:
    """Keeps the last word of each job, and writes it down in a thread of its own, which begins with the first word.

    Who says something takes no lock on the way, for an exception may be planted in him at any bytecode.
    """

    def __init__(self, write: Callable[[ProgressReports], None]) -> None:
        self._write = write
        self._latest: dict[tuple[str, str, str], str] = {}
        self._events: queue.SimpleQueue[bool] = queue.SimpleQueue()  # True: there is something; False: it is over
        self._is_signalled = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def report(self, worker: str, queue_name: str, job_id: str, line: str) -> None:
        """A job says how far it is. Any thread."""
        if self._thread is None:
            self._start()
        self._latest[worker, queue_name, job_id] = line
        if not self._is_signalled:
            self._is_signalled = True
            self._events.put(True)

    def stop(self) -> None:
        """End the thread. What was said in the last moment is dropped."""
        self._stopped.set()
        self._events.put(False)
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rtq-reports", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._events.get() and not self._stopped.is_set():
            self._is_signalled = False  # before it looks: what is said meanwhile is told anew
            reports = {}
            while self._latest:
                key, line = self._latest.popitem()
                reports[key] = line
            try:
                self._write(reports)
            except BrokerError:
                for key, line in reports.items():  # once more, unless something newer was said
                    self._latest.setdefault(key, line)
                self._events.put(True)
            self._stopped.wait(PAUSE_SECONDS)
