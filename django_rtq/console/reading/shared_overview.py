"""The overview as all viewers of a process share it."""

from __future__ import annotations

import threading
import time

from django_rtq.console.reading.metrics.time_series import Series
from django_rtq.console.reading.overview import Overview, OverviewReader
from django_rtq.exceptions import BrokerError

SHARED_SECONDS = 1.0
REST = 5  # times as long as the last read took, it is not read again: a fifth of a large Redis is enough for it
GLANCE_SECONDS = 10.0
HISTORY_SECONDS = 60.0  # counters of steps longer than a minute


class SharedOverview:
    """Reads the overview for the pages of the admin. Any thread may use it."""

    def __init__(self, reader: OverviewReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._latest: Overview | BrokerError | None = None
        self._latest_at = 0.0
        self._until = 0.0
        self._history: dict[tuple[int, int], tuple[float, list[str], list[Series]]] = {}

    def read(self, *, fresh: bool = False) -> Overview:
        """The overview, about a second old at most; `fresh`: read now. Two round trips.

        Raises BrokerError. If a read fails, those who wait for it get the same error.
        """
        asked_at = time.monotonic()
        with self._lock:
            if self._latest is None or (self._latest_at < asked_at if fresh else self._until <= asked_at):
                began_at = time.monotonic()
                self._latest = self._try_to_read()
                now = self._latest_at = time.monotonic()
                self._until = now + max(SHARED_SECONDS, REST * (now - began_at))
            if isinstance(self._latest, BrokerError):
                raise self._latest
            return self._latest

    def glance(self) -> Overview | None:
        """The last overview if it is young, without asking Redis."""
        latest, age = self._latest, time.monotonic() - self._latest_at
        return latest if isinstance(latest, Overview) and age < GLANCE_SECONDS else None

    def history(self, overview: Overview, minutes: int, step: int) -> list[Series]:
        """The counters of all queues, up to a minute old."""
        names, key = [row.details.name for row in overview.queues], (minutes, step)
        at, of, series = self._history.get(key, (0.0, [], []))
        if of != names or time.monotonic() - at >= HISTORY_SECONDS:
            series = self._reader.series.read_many(names, minutes, step, int(overview.now.timestamp() * 1000))
            self._history[key] = (time.monotonic(), names, series)
        return series

    def _try_to_read(self) -> Overview | BrokerError:
        try:
            return self._reader.read()
        except BrokerError as error:
            return error
