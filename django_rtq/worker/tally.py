"""What a child counts of its runs, for people: by task how they went and how long they took, by client how many.

It is written down once a second at the most, along with what is settled. A child that is killed takes a second of it
along: these are statistics.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import frexp

from django_rtq.broker.scripts import Argument
from django_rtq.broker.statistics import BUCKETS, bucket_of, counter_name
from django_rtq.worker.run import Run

TELL_SECONDS = 1.0
_SHORT_WAITS = [bucket_of(ms) for ms in range(1000)]
_AT_ONCE = 500  # counters, or clients, of one script call


class _Counts:
    """Those of one task of one client."""

    __slots__ = ("done", "others", "runs", "seconds", "waits")

    def __init__(self) -> None:
        self.done = 0
        self.others: dict[str, int] = {}  # failed, retried, dead, expired
        self.seconds = 0.0
        self.runs: dict[int, int] = {}  # bucket -> how many took so long
        self.waits: dict[int, int] = {}


class Tally:
    """Counts since it was last asked for them. Whoever uses it holds a lock."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, bytes], _Counts] = {}
        self._tell_at = 0.0  # on time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add_done(self, run: Run, wait_ms: int) -> None:
        """Count a run that ended well. This is on the way of every job: well under a microsecond."""
        key = (run.queue, run.task_name, run.client)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = _Counts()
        seconds, runs, waits = run.seconds, counts.runs, counts.waits
        counts.done += 1
        counts.seconds += seconds
        # bucket_of(), without the call.
        fraction, octave = frexp(seconds)
        bucket = int(fraction * BUCKETS) + octave * BUCKETS
        runs[bucket] = runs.get(bucket, 0) + 1
        bucket = _SHORT_WAITS[wait_ms] if wait_ms < 1000 else bucket_of(wait_ms)
        waits[bucket] = waits.get(bucket, 0) + 1

    def add_failed(self, run: Run, *outcomes: str) -> None:
        """Count a run that did not end well; nothing of a record that could not be read."""
        if run.task is None:
            return
        counts = self._counts.setdefault((run.queue, run.task_name, run.client), _Counts())
        for outcome in outcomes:
            counts.others[outcome] = counts.others.get(outcome, 0) + 1
        if "failed" in outcomes:
            bucket = bucket_of(run.seconds)
            counts.runs[bucket] = counts.runs.get(bucket, 0) + 1
            counts.seconds += run.seconds

    def make_due(self) -> None:
        """It is to be told at the next occasion."""
        self._tell_at = 0.0

    def take(self) -> dict[str, list[Sequence[Argument]]]:
        """By queue the arguments of script calls that write it down, and begin anew; nothing if it is not time yet."""
        if not self._counts or time.monotonic() < self._tell_at:
            return {}
        counts, self._counts = self._counts, {}
        self._tell_at = time.monotonic() + TELL_SECONDS
        of_queue: dict[str, dict[tuple[str, bytes], _Counts]] = {}
        for (queue, task, client), of_both in counts.items():
            of_queue.setdefault(queue, {})[task, client] = of_both
        return {queue: list(_calls(of_both)) for queue, of_both in of_queue.items()}


def _calls(counts: Mapping[tuple[str, bytes], _Counts]) -> Iterator[Sequence[Argument]]:
    counters: Counter[str] = Counter()
    runs: Counter[bytes] = Counter()
    seconds: dict[bytes, float] = {}
    for (task, client), one in counts.items():
        for outcome, number in (("done", one.done), *one.others.items()):
            counters[counter_name(outcome, task)] += number
        for letter, buckets in (("r", one.runs), ("w", one.waits)):
            for bucket, number in buckets.items():
                counters[counter_name(f"{letter}{bucket}", task)] += number
        runs[client] += sum(one.runs.values())
        seconds[client] = seconds.get(client, 0.0) + one.seconds
    told = [pair for pair in counters.items() if pair[1]]
    for start in range(0, len(told), _AT_ONCE):
        part = told[start : start + _AT_ONCE]
        yield (len(part), *(value for pair in part for value in pair))
    clients = [(client, number, round(seconds[client] * 1_000_000)) for client, number in runs.items() if number]
    for start in range(0, len(clients), _AT_ONCE):
        yield (0, *(value for triple in clients[start : start + _AT_ONCE] for value in triple))
