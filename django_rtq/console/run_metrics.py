"""Metrics of runs, as a process counts them. They are sent at most once a second, with outcomes.

Samples in Redis would be a write for each job; counting in the scripts one command more for each task.
"""

from __future__ import annotations

import time
from collections import defaultdict
from math import frexp

from django_rtq.console.histogram import BUCKETS, bucket_of
from django_rtq.console.run_counts import QueueCounts, dump_counts, load_counts
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.run_metrics import Calls, RunMetrics

REPORT_SECONDS = 1.0
_SHORT_WAITS = [bucket_of(ms) for ms in range(1000)]


class CountedRuns(RunMetrics):
    """Metrics since the last report. The caller holds the lock of the session."""

    def __init__(self, dump: bytes = b"") -> None:
        self._queues = load_counts(dump)
        self._report_at = 0.0  # on time.monotonic()

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

    def add(self, queue: str, task: str, *outcomes: str) -> None:
        """Count a run of a process that was killed, in its place."""
        for outcome in outcomes:
            self._queues[queue].tasks[task].outcomes[outcome] += 1

    def dump(self) -> bytes:
        """What was counted by task since the last report, for the supervisor."""
        return dump_counts(self._queues)

    def make_due(self) -> bool:
        """Report them in the next round trip. False: there are none."""
        self._report_at = 0.0
        return bool(self._queues)

    def take_due(self) -> dict[str, Calls]:
        """By queue the arguments of script calls that store them. Empty if the last report was a moment ago."""
        if not self._queues or time.monotonic() < self._report_at:
            return {}
        queues, self._queues = self._queues, defaultdict(QueueCounts)
        self._report_at = time.monotonic() + REPORT_SECONDS
        return {queue: list(of_queue.calls()) for queue, of_queue in queues.items()}

    def queues(self) -> list[str]:
        """Those with something to report."""
        return list(self._queues)

    def calls(self, queue: str) -> Calls:
        """Those that report what was counted of a queue."""
        return list(self._queues[queue].calls())

    def forget(self, queue: str) -> None:
        """What was counted of a queue is reported."""
        self._queues.pop(queue, None)
