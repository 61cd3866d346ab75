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
from django_rtq.core.worker.run import Run

REPORT_SECONDS = 1.0
_MAX_PER_CALL = 500  # counters or clients per script call
_Counted = TypeVar("_Counted")


_WAITS = 100_000  # is added to the buckets of waits, which lie among those of runs
_SHORT_WAITS = [_WAITS + bucket_of(ms) for ms in range(1000)]


class TaskCounts:
    """Outcomes and durations of the runs of one task."""

    __slots__ = ("buckets", "done_seconds", "dump", "failed_seconds", "outcomes", "wait_ms")

    def __init__(self) -> None:
        self.outcomes: defaultdict[str, int] = defaultdict(int)  # done, failed, retried, dead, expired
        self.buckets: dict[int, int] = {}  # of runs and waits -> number
        self.wait_ms = 0  # how long the jobs that succeeded had waited, together
        self.done_seconds = 0.0  # how long the runs that succeeded took, together
        self.failed_seconds = 0.0
        self.dump = b""  # for load_counts(); empty: a run was counted since


class ClientCounts:
    """Number and total time of the runs of one client."""

    __slots__ = ("runs", "seconds")

    def __init__(self) -> None:
        self.runs, self.seconds = 0, 0.0


class QueueCounts:
    """What was counted of one queue."""

    __slots__ = ("clients", "tasks")

    def __init__(self) -> None:
        self.tasks: defaultdict[str, TaskCounts] = defaultdict(TaskCounts)
        self.clients: defaultdict[bytes, ClientCounts] = defaultdict(ClientCounts)

    def calls(self) -> Iterator[Sequence[Argument]]:
        """The arguments of the script calls that store them."""
        counters, tasks = list[tuple[str, int]](), self.tasks.values()
        for task, one in self.tasks.items():
            run_us = round((one.done_seconds + one.failed_seconds) * 1_000_000)
            numbers = {**one.outcomes, "run_us": run_us, "wait_ms": one.wait_ms}
            numbers |= {f"r{at}" if at < _WAITS // 2 else f"w{at - _WAITS}": n for at, n in one.buckets.items()}
            counters += [(f"{kind} {task}", number) for kind, number in numbers.items()]
        sums = round(sum(one.done_seconds for one in tasks) * 1000), sum(one.wait_ms for one in tasks)
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
        queue, task, outcomes, *others = marshal.load(stream)
        one = queues[queue].tasks[task]
        one.outcomes.update(outcomes)
        one.buckets, one.wait_ms, one.done_seconds, one.failed_seconds = others
    return queues


class CountedRuns:
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
        # bucket_of(), inlined.
        fraction, octave = frexp(seconds)
        buckets, bucket = of_task.buckets, int(fraction * BUCKETS) + octave * BUCKETS
        buckets[bucket] = buckets.get(bucket, 0) + 1
        bucket = _SHORT_WAITS[wait_ms] if wait_ms < 1000 else _WAITS + bucket_of(wait_ms)
        buckets[bucket] = buckets.get(bucket, 0) + 1

    def add_failed(self, run: Run, *outcomes: str) -> None:
        """Count a run that failed or expired. A record that could not be read is not counted."""
        if not run.is_open:
            return
        self.add(run.queue, run.task_name, *outcomes)
        if "failed" in outcomes:
            of_queue = self._queues[run.queue]
            of_task, of_client = of_queue.tasks[run.task_name], of_queue.clients[run.client]
            bucket = bucket_of(run.seconds)
            of_task.buckets[bucket] = of_task.buckets.get(bucket, 0) + 1
            of_task.failed_seconds += run.seconds
            of_client.runs += 1
            of_client.seconds += run.seconds

    def add(self, queue: str, task: str, *outcomes: str) -> None:
        """Count a run of a process that was killed, in its place."""
        of_task = self._queues[queue].tasks[task]
        of_task.dump = b""
        for outcome in outcomes:
            of_task.outcomes[outcome] += 1

    def dump(self) -> bytes:
        """What was counted by task since the last report, for load_counts(). Only tasks that ran since then cost."""
        dumps = []
        for queue, of_queue in self._queues.items():
            for task, one in of_queue.tasks.items():
                if not one.dump:
                    counted = dict(one.outcomes), one.buckets, one.wait_ms, one.done_seconds, one.failed_seconds
                    one.dump = marshal.dumps((queue, task, *counted))
                dumps.append(one.dump)
        return b"".join(dumps)

    def make_due(self) -> bool:
        """Report them in the next round trip. False: there are none."""
        self._report_at = 0.0
        return bool(self._queues)

    def take_due(self) -> dict[str, list[Sequence[Argument]]]:
        """By queue the arguments of script calls that store them. Empty if the last report was a moment ago."""
        if not self._queues or time.monotonic() < self._report_at:
            return {}
        queues, self._queues = self._queues, defaultdict(QueueCounts)
        self._report_at = time.monotonic() + REPORT_SECONDS
        return {queue: list(of_queue.calls()) for queue, of_queue in queues.items()}


def _parts(counted: Sequence[_Counted]) -> Iterator[Sequence[_Counted]]:
    for start in range(0, len(counted), _MAX_PER_CALL):
        yield counted[start : start + _MAX_PER_CALL]
