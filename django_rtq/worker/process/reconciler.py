"""A thread of a worker process that compares its jobs with its processing list in Redis.

Redis may lose its last writes in a restart, or in a failover to a replica that lags. Then the processing list has jobs
again that are over. The lease of this worker is renewed, so nobody else would reclaim them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from django_rtq.exceptions import BrokerError
from django_rtq.threads.loop import ReconnectDelay


class Reconciler:
    """Calls `reconcile` once per lease time while the worker has jobs, and at once if there is a reason.

    The thread starts with the first job. Without jobs it sleeps without a timer: an idle worker costs no CPU time.
    """

    def __init__(self, reconcile: Callable[[], None], has_jobs: Callable[[], bool], *, lease_seconds: float) -> None:
        self._reconcile = reconcile
        self._has_jobs = has_jobs
        self._lease_seconds = lease_seconds
        self._backoff = ReconnectDelay(lease_seconds)
        self._wake_event = threading.Event()
        self._is_asleep = True  # without a timer
        self._had_jobs = False  # since the last time
        self._is_due = False
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def note_jobs(self) -> None:
        """The worker has jobs. Called after each claim, so it does next to nothing while the thread is awake."""
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
            # A worker that had jobs will have more. If the thread slept at once, each claim would wake it.
            had_jobs, self._had_jobs = self._had_jobs, False
            self._is_asleep = True
            if self._is_due or had_jobs or self._has_jobs():  # last, because of note_jobs() in another thread
                self._is_asleep = False
            is_over = not self._wake_event.wait(None if self._is_asleep else seconds)
            self._wake_event.clear()
            if self._is_stopped:
                return
            if is_over or self._is_due:
                seconds = self._reconcile_now()

    def _reconcile_now(self) -> float:
        """Returns the seconds until the next comparison."""
        self._is_due = False
        try:
            self._reconcile()
        except BrokerError:
            self._is_due = True
            return self._backoff.next_seconds()
        self._backoff.reset()
        return self._lease_seconds
