"""Latency from just before delay() to the first line of the job, on an idle worker; and a baseline."""

from __future__ import annotations

import itertools
import random
import subprocess
import time
from collections.abc import Callable
from typing import Any

from benchmarks import baseline
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile

SAMPLES = 300
# Random pause between two samples, so that they do not coincide with periodic work on this machine.
PAUSE_SECONDS = {"": (0.005, 0.020), "warm_": (0.001, 0.002)}
WARM_UP = 20


class BarePush:
    """A bare RPUSH to a process that blocks in BLPOP. A context manager."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._process = env.process("-m", "benchmarks.baseline")

    def __enter__(self) -> BarePush:
        self._receiver = self._process.__enter__()
        self._env.wait_until(
            lambda: self._env.redis.exists(baseline.READY), "the baseline process is ready", self._receiver
        )
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.__exit__(*error)

    def sample(self, slot: int, pause: tuple[float, float]) -> float:
        """Milliseconds until the number of the slot arrived there."""
        return sample(self._env, self._receiver, slot, lambda slot: self._env.redis.rpush(baseline.KEY, slot), pause)


def measure(env: Environment, readings: Readings) -> None:
    """One round: a job and a bare push, in turn."""
    from benchmarks.jobs import record_start

    env.clear()
    with env.worker() as worker, BarePush(env) as bare:
        slots = itertools.count(1)
        for pace, pause in PAUSE_SECONDS.items():
            jobs: list[float] = []
            pushes: list[float] = []
            for number in range(WARM_UP + SAMPLES):
                in_job = sample(env, worker, next(slots), record_start.delay, pause)
                in_push = bare.sample(next(slots), pause)
                if number >= WARM_UP:
                    jobs.append(in_job)
                    pushes.append(in_push)
            for percent in (50, 99):
                readings.add(f"latency.{pace}p{percent}", percentile(jobs, percent))
                readings.add(f"latency.{pace}baseline_p{percent}", percentile(pushes, percent))
            for percent in (50, 99):
                name = f"latency.{pace}p{percent}_vs_baseline"
                readings.ratio(name, f"latency.{pace}p{percent}", f"latency.{pace}baseline_p{percent}")


def sample(
    env: Environment,
    child: subprocess.Popen[bytes],
    slot: int,
    send: Callable[[int], object],
    pause: tuple[float, float],
) -> float:
    """Send the number of a slot, and return the milliseconds until the other process has filled that slot."""
    before = time.monotonic_ns()
    send(slot)
    time.sleep(random.uniform(*pause))
    env.wait_until(lambda: env.counters[slot], "a sample arrived", child)
    return (env.counters[slot] - before) / 1e6
