"""Latency: from just before delay() to the first line of the job, on a worker that waits; and the raw floor."""

from __future__ import annotations

import itertools
import random
import subprocess
import time
from collections.abc import Callable

from benchmarks import floor
from benchmarks.figures import Readings, percentile
from benchmarks.stage import Stage

SAMPLES = 300
# Between two samples, by chance: it keeps us out of step with whatever ticks on this machine.
PAUSE_SECONDS = {"": (0.005, 0.020), "warm_": (0.001, 0.002)}
WARM_UP = 20


def measure(stage: Stage, readings: Readings) -> None:
    """One round: a job, a bare push, a job, …"""
    from benchmarks.jobs import note_moment

    stage.clear()
    with stage.worker() as worker, stage.process("-m", "benchmarks.floor") as bare:
        stage.wait_until(lambda: stage.redis.exists(floor.READY), "the floor is ready", bare)
        slots = itertools.count(1)
        for pace, pause in PAUSE_SECONDS.items():
            jobs: list[float] = []
            pushes: list[float] = []
            for sample in range(WARM_UP + SAMPLES):
                in_job = _sample(stage, worker, next(slots), note_moment.delay, pause)
                in_push = _sample(stage, bare, next(slots), lambda slot: stage.redis.rpush(floor.KEY, slot), pause)
                if sample >= WARM_UP:
                    jobs.append(in_job)
                    pushes.append(in_push)
            for percent in (50, 99):
                readings.add(f"latency.{pace}p{percent}", percentile(jobs, percent))
                readings.add(f"latency.{pace}floor_p{percent}", percentile(pushes, percent))
    readings.ratio("latency.p50_vs_floor", "latency.p50", "latency.floor_p50")


def _sample(
    stage: Stage,
    child: subprocess.Popen[bytes],
    slot: int,
    send: Callable[[int], object],
    pause: tuple[float, float],
) -> float:
    """Milliseconds until the other process had it."""
    before = time.monotonic_ns()
    send(slot)
    time.sleep(random.uniform(*pause))
    stage.wait_until(lambda: stage.notes[slot], "a sample arrived", child)
    return (stage.notes[slot] - before) / 1e6
