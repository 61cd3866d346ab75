"""Latency from just before delay() to the first line of the job, on an idle worker; and a baseline."""

from __future__ import annotations

import itertools
import random
import subprocess
import time
from collections.abc import Callable

from benchmarks import baseline
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile

SAMPLES = 300
# Random pause between two samples, so that they do not coincide with periodic work on this machine.
PAUSE_SECONDS = {"": (0.005, 0.020), "warm_": (0.001, 0.002)}
WARM_UP = 20


def measure(env: Environment, readings: Readings) -> None:
    """One round: a job and a bare push, in turn."""
    from benchmarks.jobs import record_start

    env.clear()
    with env.worker() as worker, env.process("-m", "benchmarks.baseline") as bare:
        env.wait_until(lambda: env.redis.exists(baseline.READY), "the baseline process is ready", bare)
        slots = itertools.count(1)
        for pace, pause in PAUSE_SECONDS.items():
            jobs: list[float] = []
            pushes: list[float] = []
            for sample in range(WARM_UP + SAMPLES):
                in_job = _sample(env, worker, next(slots), record_start.delay, pause)
                in_push = _sample(env, bare, next(slots), lambda slot: env.redis.rpush(baseline.KEY, slot), pause)
                if sample >= WARM_UP:
                    jobs.append(in_job)
                    pushes.append(in_push)
            for percent in (50, 99):
                readings.add(f"latency.{pace}p{percent}", percentile(jobs, percent))
                readings.add(f"latency.{pace}baseline_p{percent}", percentile(pushes, percent))
    readings.ratio("latency.p50_vs_baseline", "latency.p50", "latency.baseline_p50")


def _sample(
    env: Environment,
    child: subprocess.Popen[bytes],
    slot: int,
    send: Callable[[int], object],
    pause: tuple[float, float],
) -> float:
    """Milliseconds until it arrived in the other process."""
    before = time.monotonic_ns()
    send(slot)
    time.sleep(random.uniform(*pause))
    env.wait_until(lambda: env.counters[slot], "a sample arrived", child)
    return (env.counters[slot] - before) / 1e6
