"""The file of `rtq_worker --health-file`: the supervisor touches it while its processes and Redis are well."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from pathlib import Path

from django_rtq.worker.shared_entries import Revoked
from django_rtq.worker.supervisor.fork_schedule import ForkSchedule
from django_rtq.worker.supervisor.heartbeat import Heartbeat
from django_rtq.worker.supervisor.process_pool import ProcessPool

logger = logging.getLogger("django_rtq")

TOUCH_SECONDS = 2.0


class HealthFile:
    """For the supervisor's main thread. Does nothing without a path."""

    def __init__(
        self, path: str, *, pool: ProcessPool, forks: ForkSchedule, heartbeat: Heartbeat, lease_seconds: float
    ) -> None:
        self._path = Path(path) if path else None
        self._pool, self._forks, self._heartbeat = pool, forks, heartbeat
        self._lease_seconds = lease_seconds
        self._next_touch = 0.0  # time.monotonic()
        self._has_failed = False

    def update(self) -> None:
        """Touch the file, every few seconds, if all is well."""
        now = time.monotonic()
        if self._path is None or now < self._next_touch or not self.is_well:
            return
        self._next_touch = now + TOUCH_SECONDS
        try:
            self._path.touch()
        except OSError as error:
            if not self._has_failed:
                logger.warning("the health file %s cannot be written: %s", self._path, error)
            self._has_failed = True

    def remove(self) -> None:
        """Delete the file: at the start, where a killed worker may have left it, and at the end."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    @property
    def is_well(self) -> bool:
        """Whether all processes are there and none is frozen, and Redis has answered within the last lease."""
        processes = self._pool.processes
        if not processes or self._forks.pending or any(each.shared.revoked is Revoked.ALL for each in processes):
            return False
        answered_at = self._heartbeat.last_success_at
        return answered_at > 0 and time.monotonic() - answered_at < self._lease_seconds
