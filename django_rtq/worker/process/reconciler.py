"""A thread of a worker process that has its jobs compared with what Redis has written down for it.

Redis may come back without its last moments: after a restart, or a failover to a replica that lagged. Then jobs that
are over stand in the processing list of this worker again. Its lease is renewed, so nobody else would take them back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django_rtq.exceptions import BrokerError
from django_rtq.loop import ReconnectDelay


class Reconciler:
    """Calls `compare` once a lease while the worker has jobs, and at once when there is a reason.

    The thread begins with the first job. It sleeps without a timer while there are none: an idle worker costs nothing.
    """

    def __init__(self, reconcile: Callable[[], None], has_jobs: Callable[[], bool], *, lease_seconds: float) -> None:
        self._reconcile = reconcile
        self._has_jobs = has_jobs
        self._lease_seconds = lease_seconds
        self._backoff = ReconnectDelay(lease_seconds)
        self._wake_event = threading.Event()
        self._is_asleep = True  # without a timer
        self._had_jobs = False  # since the last look
        self._is_due = False
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def note_jobs(self) -> None:
        """The worker has jobs. It is called after each claim, so it does next to nothing while the thread is awake."""
        self._had_jobs = True
        if self._is_asleep:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rtq-reconciler", daemon=True)
                self._thread.start()
            self._wake_event.set()

    def reconcile_soon(self) -> None:
        """There is a reason to compare now."""
        self._is_due = True
        self._wake_event.set()

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped = True
        self._wake_event.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        seconds = self._lease_seconds
        while True:
            # One that had jobs will have more. If it slept as soon as there are none, each claim would wake it.
            had_jobs, self._had_jobs = self._had_jobs, False
            self._is_asleep = True
            if self._is_due or had_jobs or self._has_jobs():  # asked last: note_jobs() may come in between
                self._is_asleep = False
            is_over = not self._wake_event.wait(None if self._is_asleep else seconds)
            self._wake_event.clear()
            if self._is_stopped:
                return
            if is_over or self._is_due:
                seconds = self._reconcile_now()

    def _reconcile_now(self) -> float:
        """Returns the seconds until the next time."""
        self._is_due = False
        try:
            self._reconcile()
        except BrokerError:
            self._is_due = True
            return self._backoff.next_seconds()
        self._backoff.reset()
        return self._lease_seconds
