"""The process that enqueues, in the environment of a contender: python -m benchmarks.rivals.producer NAME ACTION COUNT

Prints the measured values as JSON. The module benchmarks.rivals.NAME has

- send(task, numbers): enqueue a job for each number, one by one, and return the handles
- fill(task, numbers): the same as fast as possible; optional
- get(handle): wait for the result of a job; missing if there are no results
- group(task, numbers): enqueue a job for each number, and a callback that starts when all have ended; optional
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.counters import counters

WARM_UP = 20
PAUSE_SECONDS = (0.005, 0.015)
LONGEST_SECONDS = 20.0


def fill(queue: Any, count: int, task: str) -> None:
    """Enqueue jobs that a worker will find."""
    getattr(queue, "fill", queue.send)(task, range(count))


def enqueue(queue: Any, count: int) -> dict[str, float]:
    """Enqueue one by one. The time and the CPU of this process."""
    queue.send("noop", range(WARM_UP))
    started, cpu = time.perf_counter(), time.process_time()
    queue.send("noop", range(count))
    return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}


def latency(queue: Any, count: int) -> list[float]:
    """Milliseconds from before the call to the first line of the job."""
    started = counters()

    def sample(slot: int) -> float:
        before = time.monotonic_ns()
        queue.send("record_start", (slot,))
        deadline = time.monotonic() + LONGEST_SECONDS
        while not started[slot]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a job has not started within {LONGEST_SECONDS:g} s")
            time.sleep(0.0005)
        return (started[slot] - before) / 1e6

    return _samples(sample, count)


def get(queue: Any, count: int) -> list[float]:
    """Milliseconds from before the call until its result is here."""

    def sample(number: int) -> float:
        before = time.perf_counter()
        (handle,) = queue.send("add_one", (number,))
        assert queue.get(handle) == number + 1
        return (time.perf_counter() - before) * 1000

    return _samples(sample, count)


def group(queue: Any, count: int, task: str) -> int:
    """Enqueue a group with a callback. The moment before, in nanoseconds."""
    began = time.monotonic_ns()
    queue.group(task, range(count))
    return began


def _samples(sample: Callable[[int], float], count: int) -> list[float]:
    """Samples at random times, without the first ones, which connect."""
    samples = []
    for number in range(1, WARM_UP + count + 1):
        samples.append(sample(number))
        time.sleep(random.uniform(*PAUSE_SECONDS))
    return samples[WARM_UP:]


if __name__ == "__main__":
    name, action, count, *task = sys.argv[1:]
    measure = {"fill": fill, "enqueue": enqueue, "latency": latency, "get": get, "group": group}[action]
    print(json.dumps(measure(importlib.import_module(f"benchmarks.rivals.{name}"), int(count), *task)))
