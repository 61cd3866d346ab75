"""Keeps the counters of tasks: those of each hour that is over become a line for each task, in a hash of the day.

Python makes the lines: with thousands of counters a script would block Redis for too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django_rtq.broker.keys import Keys, QueueKeys
from django_rtq.broker.redis.client import RedisClient, as_dict
from django_rtq.broker.redis.commands import Command
from django_rtq.broker.scripts import SCRIPTS

MAX_TASKS = 500  # of an hour and queue that are kept
_AT_ONCE = 50  # tasks in one script call; the lines of a day and a task may have some kB
_HOURS = 12  # stored in one go
_COUNTED_HOURS = 49  # before the present one: the single counters of earlier ones may have expired
_RUNS = (b"done", b"failed")
_SUMS = (b"run_us", b"wait_ms")  # are not kept


class TaskDays:
    """Stores the hours that are over. Any thread may use it, and any number of schedulers."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis, self._keys = redis, keys

    def store(self, queues: Sequence[str]) -> float:
        """Store up to 12 hours of each queue, in two or three round trips for each. Returns the seconds until there is
        another hour; 0.0: hours are left. Raises BrokerUnavailable."""
        clocks: list[Command] = [("HGET", self._keys.of(queue).clock, "tasks_stored") for queue in queues]
        *stored, (seconds, _) = self._redis.execute([*clocks, ("TIME",)], resend=True)
        present, left = int(seconds) // 3600, 3600.0 - int(seconds) % 3600
        for queue, next_hour in zip(queues, stored, strict=True):
            first = max(int(next_hour or 0), present - _COUNTED_HOURS)
            ends = min(first + _HOURS, present)
            if first != ends:
                self._store(self._keys.of(queue), range(first, ends), ends)
            if ends < present:
                left = 0.0
        return left

    def _store(self, keys: QueueKeys, hours: range, ends: int) -> None:
        reads: list[Command] = [("HGETALL", keys.tasks + b"%d" % hour) for hour in hours]
        found = self._redis.execute(reads, resend=True) if reads else []
        script, calls = SCRIPTS["store_task_hour"], []
        for hour, counters in zip(hours, found, strict=True):
            pairs = list(_lines(as_dict(counters)).items())
            for start in range(0, len(pairs), _AT_ONCE):
                part = [text for pair in pairs[start : start + _AT_ONCE] for text in pair]
                calls.append(script.call(keys, (hour, "", *part)))
        self._redis.execute([*calls, script.call(keys, (ends, ends))], resend=True)


def _lines(counters: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Task -> kind, number, …; of too many tasks those with most runs."""
    words: dict[bytes, list[bytes]] = {}
    runs: dict[bytes, int] = {}
    for kind, task, number in _split(counters):
        words.setdefault(task, []).extend((kind, number))
        runs[task] = runs.get(task, 0) + (int(number) if kind in _RUNS else 0)
    kept = sorted(words, key=lambda task: -runs[task])[:MAX_TASKS]
    return {task: b" ".join(words[task]) for task in kept}


def _split(counters: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, bytes, bytes]]:
    for name, number in counters.items():
        kind, is_of_task, task = name.partition(b" ")
        if is_of_task and kind not in _SUMS:
            yield kind, task, number
