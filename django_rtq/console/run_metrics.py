"""Metrics of runs, as a process counts them. They are sent at most once a second, with outcomes.

Samples in Redis would be a write for each job; counting in the scripts one command more for each task. What was counted
by task and not sent yet lies in the memory that the process shares with its supervisor, as dump() wrote it: the
supervisor sends it if the process is killed.
"""

from __future__ import annotations

import marshal
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from math import frexp
from typing import TypeVar

from django_rtq.console.histogram import BUCKETS, bucket_of
from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.worker.process.run import Run
from django_rtq.core.worker.run_metrics import Calls, RunMetrics

REPORT_SECONDS = 1.0
_SHORT_WAITS = [bucket_of(ms) for ms in range(1000)]
_MAX_PER_CALL = 500  # counters or clients per script call
_Counted = TypeVar("_Counted")


class TaskCounts:
    """Outcomes and durations of the runs of one task."""

    __slots__ = ("done_seconds", "dump", "failed_seconds", "outcomes", "runs", "wait_ms", "waits")

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, int] = defaultdict(int)  # done, failed, retried, dead, expired
        self.done_seconds = 0.0  # how long the runs that succeeded took, together
        self.failed_seconds = 0.0
        self.wait_ms = 0  # how long the jobs that succeeded had waited, together
        self.runs: dict[int, int] = {}  # bucket -> number of runs
        self.waits: dict[int, int] = {}
        self.dump = b""  # what make_dump() returned; empty: a run was counted since

    def make_dump(self, queue: str, task: str) -> bytes:
        """All numbers, for load_counts()."""
        self.dump = marshal.dumps(
            (
                queue,
                task,
                dict(self.outcomes),
                self.done_seconds,
                self.failed_seconds,
                self.wait_ms,
                self.runs,
                self.waits,
            )
        )
        return self.dump

    def counters(self) -> Iterator[tuple[str, int]]:
        """Name (without the task) and value of each counter."""
        yield from self.outcomes.items()
        yield "run_us", round((self.done_seconds + self.failed_seconds) * 1_000_000)
        yield "wait_ms", self.wait_ms
        for letter, buckets in (("r", self.runs), ("w", self.waits)):
            for bucket, number in buckets.items():
                yield f"{letter}{bucket}", number


class ClientCounts:
    """Number and total time of the runs of one client."""

    __slots__ = ("runs", "seconds")

    def __init__(self) -> None:
        self.runs = 0
        self.seconds = 0.0


class QueueCounts:
    """What was counted of one queue."""

    __slots__ = ("clients", "tasks")

    def __init__(self) -> None:
        self.tasks: defaultdict[str, TaskCounts] = defaultdict(TaskCounts)
        self.clients: defaultdict[bytes, ClientCounts] = defaultdict(ClientCounts)

    def calls(self) -> Iterator[Sequence[Argument]]:
        """The arguments of the script calls that store them."""
        counters = [
            (f"{name} {task}", number) for task, of_task in self.tasks.items() for name, number in of_task.counters()
        ]
        seconds = sum(of_task.done_seconds for of_task in self.tasks.values())
        sums = (round(seconds * 1000), sum(of_task.wait_ms for of_task in self.tasks.values()))
        for part in _parts(counters):
            yield (*sums, len(part), *(value for pair in part for value in pair))
            sums = (0, 0)
        clients = [(client, one.runs, round(one.seconds * 1_000_000)) for client, one in self.clients.items()]
        for triples in _parts(clients):
            yield (0, 0, 0, *(value for triple in triples for value in triple))


def load_counts(dump: bytes) -> defaultdict[str, QueueCounts]:
    """By queue what CountedRuns.dump() wrote in another process."""
    queues: defaultdict[str, QueueCounts] = defaultdict(QueueCounts)
    stream = BytesIO(dump)
    while stream.tell() < len(dump):
        queue, task, outcomes, done_seconds, failed_seconds, wait_ms, runs, waits = marshal.load(stream)
        of_task = queues[queue].tasks[task]
        of_task.outcomes.update(outcomes)
        of_task.done_seconds, of_task.failed_seconds, of_task.wait_ms = done_seconds, failed_seconds, wait_ms
        of_task.runs, of_task.waits = runs, waits
    return queues


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
        """What was counted by task since the last report, for load_counts(). Only tasks that ran since then cost."""
        return b"".join(
            one.dump or one.make_dump(queue, task)
            for queue, counts in self._queues.items()
            for task, one in counts.tasks.items()
        )

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


def _parts(counted: Sequence[_Counted]) -> Iterator[Sequence[_Counted]]:
    for start in range(0, len(counted), _MAX_PER_CALL):
        yield counted[start : start + _MAX_PER_CALL]
