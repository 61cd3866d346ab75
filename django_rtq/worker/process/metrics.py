"""Metrics of runs: outcomes and durations by task, numbers and time by client.

They are sent at most once a second, with outcomes. A process that is killed loses the last second.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import frexp
from typing import TypeVar

from django_rtq.broker.metrics.histogram import BUCKETS, bucket_of, counter_name
from django_rtq.broker.redis.commands import Argument
from django_rtq.worker.process.run import Run

REPORT_SECONDS = 1.0
_SHORT_WAITS = [bucket_of(ms) for ms in range(1000)]
_MAX_PER_CALL = 500  # counters or clients per script call
_Counted = TypeVar("_Counted")


class _TaskMetrics:
    """Outcomes and durations of the runs of one task."""

    __slots__ = ("done_seconds", "failed_seconds", "outcomes", "runs", "wait_ms", "waits")

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, int] = defaultdict(int)  # done, failed, retried, dead, expired
        self.done_seconds = 0.0  # how long the runs that succeeded took, together
        self.failed_seconds = 0.0
        self.wait_ms = 0  # how long the jobs that succeeded had waited, together
        self.runs: dict[int, int] = {}  # bucket -> number of runs
        self.waits: dict[int, int] = {}

    def counters(self) -> Iterator[tuple[str, int]]:
        """Name (without the task) and value of each counter."""
        yield from self.outcomes.items()
        yield "run_us", round((self.done_seconds + self.failed_seconds) * 1_000_000)
        yield "wait_ms", self.wait_ms
        for letter, buckets in (("r", self.runs), ("w", self.waits)):
            for bucket, number in buckets.items():
                yield f"{letter}{bucket}", number


class _ClientMetrics:
    """Number and total time of the runs of one client."""

    __slots__ = ("runs", "seconds")

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0


class _QueueMetrics:
    """Metrics of one queue."""

    __slots__ = ("clients", "tasks")

    def __init__(self) -> None:
        self.tasks: defaultdict[str, _TaskMetrics] = defaultdict(_TaskMetrics)
        self.clients: defaultdict[bytes, _ClientMetrics] = defaultdict(_ClientMetrics)

    def calls(self) -> Iterator[Sequence[Argument]]:
        """The arguments of the script calls that store them."""
        counters = [
            (counter_name(name, task), number)
            for task, of_task in self.tasks.items()
            for name, number in of_task.counters()
        ]
        seconds = sum(of_task.done_seconds for of_task in self.tasks.values())
        sums = (round(seconds * 1000), sum(of_task.wait_ms for of_task in self.tasks.values()))
        for part in _parts(counters):
            yield (*sums, len(part), *(value for pair in part for value in pair))
            sums = (0, 0)
        clients = [(client, one.runs, round(one.seconds * 1_000_000)) for client, one in self.clients.items()]
        for triples in _parts(clients):
            yield (0, 0, 0, *(value for triple in triples for value in triple))


class RunMetrics:
    """Metrics since the last report. The caller holds the lock of the session."""

    def __init__(self) -> None:
        self._queues: defaultdict[str, _QueueMetrics] = defaultdict(_QueueMetrics)
        self._report_at = 0.0  # on time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add_done(self, run: Run, wait_ms: int) -> None:
        """Count a run that succeeded. Called for every job: takes well under a microsecond."""
        of_queue = self._queues[run.queue]
        of_task, of_client, seconds = of_queue.tasks[run.task_name], of_queue.clients[run.client], run.seconds
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
        for outcome in outcomes:
            of_task.outcomes[outcome] += 1
        if "failed" in outcomes:
            bucket = bucket_of(run.seconds)
            of_task.runs[bucket] = of_task.runs.get(bucket, 0) + 1
            of_task.failed_seconds += run.seconds
            of_client = of_queue.clients[run.client]
            of_client.runs += 1
            of_client.seconds += run.seconds

    def make_due(self) -> None:
        """Report them in the next round trip."""
        self._report_at = 0.0

    def take_due(self) -> dict[str, list[Sequence[Argument]]]:
        """By queue the arguments of script calls that store them. Empty if the last report was a moment ago."""
        if not self._queues or time.monotonic() < self._report_at:
            return {}
        queues, self._queues = self._queues, defaultdict(_QueueMetrics)
        self._report_at = time.monotonic() + REPORT_SECONDS
        return {queue: list(of_queue.calls()) for queue, of_queue in queues.items()}


def _parts(counted: Sequence[_Counted]) -> Iterator[Sequence[_Counted]]:
    for start in range(0, len(counted), _MAX_PER_CALL):
        yield counted[start : start + _MAX_PER_CALL]
