"""Metrics of runs, as a process counts them. They are sent at most once a second, with outcomes.

Samples in Redis would be a write for each job; counting in the scripts one command more for each task.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from math import frexp

from django_rtq.core.broker.histogram import BUCKETS, bucket_of
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.run_counts import QueueCounts, dump_counts

REPORT_SECONDS = 1.0
_SHORT_WAITS = [bucket_of(ms) for ms in range(1000)]


class RunMetrics:
    """Metrics since the last report. The caller holds the lock of the session."""

    def __init__(self) -> None:
        self._queues: defaultdict[str, QueueCounts] = defaultdict(QueueCounts)
        self._report_at = 0.0  # on time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add_done(self, run: Run, wait_ms: int) -> None:
        """Count a run that succeeded. Called for every job: takes well under a microsecond."""
        of_queue = self._queues[run.queue]
        of_task, of_client, seconds = of_queue.tasks[run.task_name], of_queue.clients[run.client], run.seconds
        of_task.dump = b""
        of_task.outcomes["done"] += 1
        of_task.done_seconds += seconds
        of_task.wait_ms += wait_ms
        of_client.runs += 1
        of_client.seconds += seconds
        runs, waits = of_task.runs, of_task.waits
        # bucket_of(), inlined.
        fraction, octave = frexp(seconds)
        bucket = int(fraction * BUCKETS) + octave * BUCKETS
        runs[bucket] = runs.get(bucket, 0) + 1
        bucket = _SHORT_WAITS[wait_ms] if wait_ms < 1000 else bucket_of(wait_ms)
        waits[bucket] = waits.get(bucket, 0) + 1

    def add_failed(self, run: Run, *outcomes: str) -> None:
        """Count a run that failed or expired. A record that could not be read is not counted."""
        if not run.is_open:
            return
        of_queue = self._queues[run.queue]
        of_task = of_queue.tasks[run.task_name]
        of_task.dump = b""
        for outcome in outcomes:
            of_task.outcomes[outcome] += 1
        if "failed" in outcomes:
            bucket = bucket_of(run.seconds)
            of_task.runs[bucket] = of_task.runs.get(bucket, 0) + 1
            of_task.failed_seconds += run.seconds
            of_client = of_queue.clients[run.client]
            of_client.runs += 1
            of_client.seconds += run.seconds

    def dump(self) -> bytes:
        """What was counted by task since the last report, for load_counts() in the supervisor."""
        return dump_counts(self._queues)

    def make_due(self) -> None:
        """Report them in the next round trip."""
        self._report_at = 0.0

    def take_due(self) -> dict[str, list[Sequence[Argument]]]:
        """By queue the arguments of script calls that store them. Empty if the last report was a moment ago."""
        if not self._queues or time.monotonic() < self._report_at:
            return {}
        queues, self._queues = self._queues, defaultdict(QueueCounts)
        self._report_at = time.monotonic() + REPORT_SECONDS
        return {queue: list(of_queue.calls()) for queue, of_queue in queues.items()}
