"""Metrics of tasks and deploys: counters that workers add up and write once a second.

They are approximate: what a killed worker had not written yet is missing. The runs that were interrupted are counted as
failed when its jobs are reclaimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

from django_rtq.console.histogram import percentile
from django_rtq.console.merging import COUNTS, LEAST, ONE, SUM, merge_by
from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.keys import QueueKeys
from django_rtq.core.broker.redis.client import as_dict
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.jobs.job import clock_moment

HOUR_MS = 3_600_000
MAX_HOURS = 48  # before the present one
OUTCOMES = ("done", "failed", "crashed", "retried", "dead", "expired")  # of tasks
MAX_NAMES = 50_000  # of counters that are remembered, in some MB
_BUCKET = re.compile(r"[rw]-?\d+")  # seconds of a run, milliseconds of a wait


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMetrics:
    """The runs of a task in some hours."""

    done: int = field(default=0, metadata=SUM)
    failed: int = field(default=0, metadata=SUM)  # runs that failed, also those that crashed their worker
    crashed: int = field(default=0, metadata=SUM)  # runs that crashed their worker
    retried: int = field(default=0, metadata=SUM)  # failed runs that were followed by a retry
    dead: int = field(default=0, metadata=SUM)
    expired: int = field(default=0, metadata=SUM)
    #: Bucket of seconds -> runs.
    runs: Mapping[int, int] = field(default_factory=dict, hash=False, repr=False, metadata=COUNTS)
    #: Bucket of ms -> jobs.
    waits: Mapping[int, int] = field(default_factory=dict, hash=False, repr=False, metadata=COUNTS)

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
                metrics=TaskCounts.of(dict(zip(words[::2], map(int, words[1::2]), strict=True))).metrics(),
            )
            for version, since, text in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
            for words in [text.split()]
        ]


def merged_versions(lists: Iterable[Iterable[VersionRuns]]) -> list[VersionRuns]:
    """Those of several queues or shards, the newest first."""
    return sorted(merge_by("version", chain.from_iterable(lists)), key=attrgetter("since"), reverse=True)


def read_task_metrics(flats: Iterable[Any], past: Mapping[str, TaskCounts], without: bytes) -> dict[str, TaskMetrics]:
    """Add up counters of tasks, as HGETALL replies them, to those of the past, by task."""
    counts_of = {task: counts.copy(without) for task, counts in past.items()}
    for flat in flats:
        add_counters(counts_of, flat, without=without)
    return {task: counts.metrics() for task, counts in sorted(counts_of.items())}


def add_counters(found: dict[str, TaskCounts], flat: Sequence[Any], *, without: bytes = b"") -> None:
    """Add counters of tasks, as HGETALL replies them: name, number, ... A counter of no task has the task "".

    `without`: the letters of histograms that are left out, r or w.
    """
    for name, number in zip(flat[::2], flat[1::2], strict=True):
        if name[0] in without and name[1:2] <= b"9":  # r-3 or w7, but not retried
            continue
        task, kind, bucket = read_counter_name(name)
        counts = found.get(task)
        if counts is None:
            counts = found[task] = TaskCounts()
        if bucket is None:
            counts.outcomes[kind] = counts.outcomes.get(kind, 0) + int(number)
        else:
            buckets = counts.runs if kind == "r" else counts.waits
            buckets[bucket] = buckets.get(bucket, 0) + int(number)


@lru_cache(maxsize=MAX_NAMES)
def read_counter_name(name: bytes) -> tuple[str, str, int | None]:
    """The task, the kind and the bucket (None: it is no histogram) of a counter, which is named by kind and task.

    The kind: done, failed, crashed, retried, dead or expired; run_us or wait_ms; r (run) or w (wait) and a bucket.
    """
    kind, _, task = name.decode(errors="replace").partition(" ")
    return (task, kind[0], int(kind[1:])) if _BUCKET.fullmatch(kind) else (task, kind, None)


@dataclass(slots=True)
class TaskCounts:
    """Sums of a task's counters."""

    outcomes: dict[str, int] = field(default_factory=dict)  # done, failed, …, run_us, wait_ms
    runs: dict[int, int] = field(default_factory=dict)  # bucket of the run time in seconds -> runs
    waits: dict[int, int] = field(default_factory=dict)  # bucket of the wait in ms -> jobs

    @classmethod
    def of(cls, numbers: Mapping[bytes, int]) -> TaskCounts:
        """Counters by their kind."""
        counts = {"": cls()}
        add_counters(counts, [item for pair in numbers.items() for item in pair])
        return counts[""]

    def copy(self, without: bytes = b"") -> TaskCounts:
        """The same sums, to be added to, without some histograms: see add_counters()."""
        runs, waits = ({} if letter in without else dict(of) for letter, of in ((b"r", self.runs), (b"w", self.waits)))
        return TaskCounts(dict(self.outcomes), runs, waits)

    def metrics(self) -> TaskMetrics:
        """These sums, and percentiles."""
        outcomes = {name: self.outcomes.get(name, 0) for name in OUTCOMES}
        return TaskMetrics(**outcomes, runs=self.runs, waits=self.waits)


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """A version of the project, from when on it was the latest that workers ran. See RTQ["VERSION"]."""

    at: datetime  # by the clock of Redis
    version: str


def deploy_commands(broker: Broker) -> list[Command]:
    """The command for read_deploys(); none without RTQ["VERSION"]."""
    return [("LRANGE", broker.keys.of(broker.config.default_queue).deploys, 0, -1)] if broker.config.version else []


def read_deploys(replies: Sequence[Any]) -> list[Deploy]:
    """The deploys in the replies to deploy_commands(), the newest first: those of the last 31 days, 50 at most."""
    pairs = [entry.decode(errors="replace").partition(" ") for reply in replies for entry in reply]
    return [Deploy(at=clock_moment(int(at_ms)), version=version) for at_ms, _, version in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of a queue since the first scrape."""

    counters: Mapping[str, int]  # enqueued, succeeded, …
    tasks: Mapping[str, TaskCounts]

    @classmethod
    def read(cls, lists: Iterable[Any]) -> Totals:
        """From what read_totals() returns."""
        tasks: dict[str, TaskCounts] = {}
        for counters in lists:
            add_counters(tasks, counters)
        of_queue = tasks.pop("", TaskCounts()).outcomes
        return cls(
            counters={name: n for name, n in of_queue.items() if name not in ("minute", "hour")},  # these are times
            tasks=tasks,
        )


def totals_commands(keys: QueueKeys, hour: int) -> tuple[Command, ...]:
    """The commands that bring the totals of a queue up to date, and then read them and what is not in them.

    While a clock that was put back catches up, the present counters may be those of the hour behind `hour`. Reading
    very many counters takes several times as long in a script.
    """
    hours: list[Command] = [("HGETALL", keys.tasks + b"%d" % each) for each in (hour, hour + 1)]
    return SCRIPTS["update_totals"].call(keys, ()), *hours, ("HGETALL", keys.totals)


def read_totals(hour: int, replies: Sequence[Any]) -> list[Any]:
    """Lists of counters that together are the sums, from the replies to totals_commands().

    The totals say themselves which minutes and hours are in them: others may have added some between two commands. A
    present minute or hour counts only if all before it are added, so that no sum goes back.
    """
    (minute, of_minute), this_hour, next_hour, totals = replies
    first_left = as_dict(totals)  # empty if the queue was forgotten meanwhile
    present = [(b"minute", minute, of_minute), (b"hour", hour, this_hour), (b"hour", hour + 1, next_hour)]
    return [totals, *(counters for name, at, counters in present if first_left.get(name) == b"%d" % at)]
