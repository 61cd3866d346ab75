"""What is counted of runs: outcomes and durations by task, numbers and time by client.

The process counts. What it has counted by task and not sent yet lies in the memory that it shares with its supervisor,
as dump_counts() wrote it: the supervisor sends it if the process is killed.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TypeVar

from django_rtq.console.histogram import counter_name
from django_rtq.core.broker.redis.commands import Argument

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
        yield from self._calls_of_tasks()
        clients = [(client, one.runs, round(one.seconds * 1_000_000)) for client, one in self.clients.items()]
        for triples in _parts(clients):
            yield (0, 0, 0, *(value for triple in triples for value in triple))

    def _calls_of_tasks(self) -> Iterator[Sequence[Argument]]:
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


def dump_counts(queues: Mapping[str, QueueCounts]) -> bytes:
    """What was counted by task, for load_counts() in another process. Only tasks that ran since the last call cost."""
    return b"".join(
        one.dump or one.make_dump(queue, task) for queue, counts in queues.items() for task, one in counts.tasks.items()
    )


def load_counts(dump: bytes) -> defaultdict[str, QueueCounts]:
    """By queue what dump_counts() was given."""
    queues: defaultdict[str, QueueCounts] = defaultdict(QueueCounts)
    stream = BytesIO(dump)
    while stream.tell() < len(dump):
        queue, task, outcomes, done_seconds, failed_seconds, wait_ms, runs, waits = marshal.load(stream)
        of_task = queues[queue].tasks[task]
        of_task.outcomes.update(outcomes)
        of_task.done_seconds, of_task.failed_seconds, of_task.wait_ms = done_seconds, failed_seconds, wait_ms
        of_task.runs, of_task.waits = runs, waits
    return queues


def _parts(counted: Sequence[_Counted]) -> Iterator[Sequence[_Counted]]:
    for start in range(0, len(counted), _MAX_PER_CALL):
        yield counted[start : start + _MAX_PER_CALL]
