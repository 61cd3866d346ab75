"""Metrics of tasks and deploys: counters that workers add up and write once a second.

They are approximate: what a killed worker had not written yet is missing. The runs that were interrupted are counted as
failed when its jobs are reclaimed.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

from django_rtq.console.histogram import percentile
from django_rtq.console.merging import COUNTS, LEAST, ONE, SUM, merge_by
from django_rtq.console.reading.queues import ask, packets
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.redis.commands import Command, Steps, checked
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment

HOUR_MS = 3_600_000
AT_ONCE = 10_000  # counters that one round trip reads; Redis serves others in between
MAX_NAMES = 50_000  # of counters that are remembered, in some MB

Hour = tuple[str, int]  # a queue, and an hour since 1970
_BUCKET = re.compile(r"[rw]-?\d+")  # seconds of a run, milliseconds of a wait


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class TaskMetrics:
    """The runs of a task in some hours: sums of its counters. Only who adds them up changes it."""

    done: int = field(default=0, metadata=SUM)
    failed: int = field(default=0, metadata=SUM)  # runs that failed, also those that crashed their worker
    crashed: int = field(default=0, metadata=SUM)  # runs that crashed their worker
    retried: int = field(default=0, metadata=SUM)  # failed runs that were followed by a retry
    dead: int = field(default=0, metadata=SUM)
    expired: int = field(default=0, metadata=SUM)
    run_us: int = field(default=0, compare=False, metadata=SUM)  # how long all runs took
    wait_ms: int = field(default=0, compare=False, metadata=SUM)  # how long the jobs that succeeded had waited
    #: Bucket of seconds -> runs.
    runs: dict[int, int] = field(default_factory=dict, hash=False, repr=False, metadata=COUNTS)
    #: Bucket of ms -> jobs.
    waits: dict[int, int] = field(default_factory=dict, hash=False, repr=False, metadata=COUNTS)

    @classmethod
    def of(cls, numbers: Mapping[bytes, int]) -> TaskMetrics:
        """Counters by their kind."""
        metrics = {"": cls()}
        add_counters(metrics, [item for pair in numbers.items() for item in pair])
        return metrics[""]

    @property
    def run_p50(self) -> float | None:
        """The median of all runs, in seconds; None: there was none."""
        return percentile(self.runs, 0.5)

    @property
    def run_p95(self) -> float | None:
        """The time that 95 % of the runs took less than, in seconds; None: there was none."""
        return percentile(self.runs, 0.95)

    @property
    def wait_p50(self) -> float | None:
        """The median of what jobs waited for their first run, in seconds; None: there was none."""
        return _seconds(percentile(self.waits, 0.5))

    @property
    def wait_p95(self) -> float | None:
        """What 95 % of the jobs waited less than for their first run, in seconds; None: there was none."""
        return _seconds(percentile(self.waits, 0.95))

    @property
    def failure_rate(self) -> float | None:
        """Failed runs as a share of all runs, 0 to 1; None: there was none."""
        runs = self.done + self.failed
        return self.failed / runs if runs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRuns:
    """The runs of a task, or of a queue, with one version of the project."""

    version: str
    since: datetime = field(metadata=LEAST)  # when the first of these runs were counted, by the clock of Redis
    metrics: TaskMetrics = field(metadata=ONE)

    @classmethod
    def read_all(cls, flat: Sequence[bytes]) -> list[VersionRuns]:
        """From the versions in the reply to task_history."""
        return [
            cls(
                version=version.decode(errors="replace"),
                since=clock_moment(int(since)),
                metrics=TaskMetrics.of(dict(zip(words[::2], map(int, words[1::2]), strict=True))),
            )
            for version, since, text in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
            for words in [text.split()]
        ]


def merged_versions(lists: Iterable[Iterable[VersionRuns]]) -> list[VersionRuns]:
    """Those of several queues or shards, the newest first."""
    return sorted(merge_by("version", chain.from_iterable(lists)), key=attrgetter("since"), reverse=True)


def add_counters(found: dict[str, TaskMetrics], flat: Sequence[Any]) -> None:
    """Add counters of tasks, as HGETALL replies them: name, number, ... A counter of no task has the task ""."""
    for name, number in zip(flat[::2], flat[1::2], strict=True):
        task, kind, bucket = read_counter_name(name)
        metrics = found.get(task)
        if metrics is None:
            metrics = found[task] = TaskMetrics()
        if bucket is not None:
            buckets = metrics.runs if kind == "r" else metrics.waits
            buckets[bucket] = buckets.get(bucket, 0) + int(number)
        elif kind in _NUMBERS:
            setattr(metrics, kind, getattr(metrics, kind) + int(number))


@lru_cache(maxsize=MAX_NAMES)
def read_counter_name(name: bytes) -> tuple[str, str, int | None]:
    """The task, the kind and the bucket (None: it is no histogram) of a counter, which is named by kind and task.

    The kind: done, failed, crashed, retried, dead or expired; run_us or wait_ms; r (run) or w (wait) and a bucket.
    """
    kind, _, task = name.decode(errors="replace").partition(" ")
    return (task, kind[0], int(kind[1:])) if _BUCKET.fullmatch(kind) else (task, kind, None)


_NUMBERS = {each.name for each in fields(TaskMetrics)} - {"runs", "waits"}


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


# -- all tasks, hour by hour


class TaskHours:
    """Reads the counters of all tasks over some hours: with hundreds of tasks, many thousands of numbers.

    1. one script for each queue says how many counters each hour has
    2. hours that are not known yet are read with plain commands, which takes Redis a fifth of the time of a script

    What was counted in the hours that are over is kept: it does not change any more. What was read before an error is
    kept, too, so that the next read goes on from there. Any thread may use it; one reads at a time.
    """

    def __init__(self, broker: Broker, hours: int) -> None:
        self._redis, self._keys, self._hours = broker.redis, broker.keys, hours
        self._lock = threading.Lock()
        self._sums: dict[str, TaskMetrics] = {}  # of the hours that are over, in all queues together
        self._sizes: dict[Hour, int] = {}  # how many counters each of these hours has

    def read(self, queues: Sequence[str]) -> dict[str, TaskMetrics]:
        """The sums of the present hour and of those before it, by task, of all queues together.

        Two round trips if the hours before are known, else more. Raises BrokerError.
        """
        with self._lock:
            script = SCRIPTS["task_hours"]
            replies = ask(self._redis, {queue: [script.call(self._keys.of(queue), (self._hours,))] for queue in queues})
            present, past = dict[Hour, int](), dict[Hour, int]()
            for queue, ((hour, *before, size),) in replies.items():
                present |= {(queue, hour): size} if size else {}
                past |= {(queue, hour - len(before) + place): one for place, one in enumerate(before) if one}
            if any(past.get(hour) != size for hour, size in self._sizes.items()):  # one has left
                self._sums, self._sizes = {}, {}
            for place, flat in self._read({hour: size for hour, size in past.items() if hour not in self._sizes}):
                add_counters(self._sums, flat)
                self._sizes[place] = past[place]
            sums = {task: replace(of, runs={**of.runs}, waits={**of.waits}) for task, of in self._sums.items()}
            for _, flat in self._read(present):
                add_counters(sums, flat)
            return sums

    def _read(self, sizes: Mapping[Hour, int]) -> Iterator[tuple[Hour, Any]]:
        for packet in packets(sizes, AT_ONCE):
            commands: list[Command] = [("HGETALL", self._keys.of(queue).tasks + b"%d" % hour) for queue, hour in packet]
            yield from zip(packet, self._redis.execute(commands, resend=True), strict=True)


# -- deploys


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """A version of the project, from when on it was the latest that workers ran. See RTQ["VERSION"]."""

    at: datetime  # by the clock of Redis
    version: str


def deploys_of(broker: Broker) -> Steps[list[Deploy]]:
    """Read those of the last 31 days, 50 at most, the newest first; none without RTQ["VERSION"]."""
    if not broker.config.version:
        return []
    (stored,) = checked((yield [("LRANGE", broker.keys.of(broker.config.default_queue).deploys, 0, -1)]))
    pairs = [entry.decode(errors="replace").partition(" ") for entry in stored]
    return [Deploy(at=clock_moment(int(at_ms)), version=version) for at_ms, _, version in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of a queue since the first scrape."""

    counters: Mapping[str, int]  # enqueued, succeeded, …
    tasks: Mapping[str, TaskMetrics]

    @classmethod
    def read_all(cls, broker: Broker, queues: Sequence[str], hour: int) -> dict[str, Totals]:
        """The totals of these queues, brought up to date in Redis. One round trip. `hour`: the present one.

        Reading very many counters takes several times as long in a script.
        """

        def commands(keys: QueueKeys) -> list[Command]:
            # While a clock that was put back catches up, the present counters may be those of the hour behind.
            hours: list[Command] = [("HGETALL", keys.tasks + b"%d" % each) for each in (hour, hour + 1)]
            return [SCRIPTS["update_totals"].call(keys, ()), *hours, ("HGETALL", keys.totals)]

        replies = ask(broker.redis, {queue: commands(broker.keys.of(queue)) for queue in queues})
        return {queue: cls.read(hour, of_queue) for queue, of_queue in replies.items()}

    @classmethod
    def read(cls, hour: int, replies: Sequence[Any]) -> Totals:
        """From the replies about one queue.

        The totals say themselves which minutes and hours are in them: others may have added some between two commands.
        A present minute or hour counts only if all before it are added, so that no sum goes back.
        """
        (minute, of_minute), this_hour, next_hour, totals = replies
        first_left = as_dict(totals)  # empty if the queue was forgotten meanwhile
        present = [(b"minute", minute, of_minute), (b"hour", hour, this_hour), (b"hour", hour + 1, next_hour)]
        counters, tasks = Counter[str](), dict[str, TaskMetrics]()
        for flat in [totals, *(flat for name, at, flat in present if first_left.get(name) == b"%d" % at)]:
            add_counters(tasks, flat)
            of_queue = zip(flat[::2], flat[1::2], strict=True)
            counters.update({name.decode(errors="replace"): int(n) for name, n in of_queue if b" " not in name})
        tasks.pop("", None)
        return cls(counters=counters, tasks=tasks)
