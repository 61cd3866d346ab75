"""Latency: from just before delay() to the first line of the job, on a worker that waits; and the raw floor."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable

from benchmarks import floor
from benchmarks.figures import Readings, percentile
from benchmarks.stage import Stage

SAMPLES = 300
PAUSE_SECONDS = (0.005, 0.020)  # chance keeps us out of step with whatever ticks on this machine
WARM_UP = 20


def measure(stage: Stage, readings: Readings) -> None:
    """One round: a job, a bare push, a job, …"""
    from benchmarks.jobs import note_moment

    stage.clear()
    with stage.worker() as worker, stage.process("-m", "benchmarks.floor") as bare:
        stage.wait_until(lambda: stage.redis.exists(floor.READY), "the floor is ready", bare)
        jobs: list[float] = []
        pushes: list[float] = []
        for sample in range(WARM_UP + SAMPLES):
            slot = 1 + 2 * sample
            in_job = _sample(stage, worker, slot, note_moment.delay)
            in_push = _sample(stage, bare, slot + 1, lambda slot: stage.redis.rpush(floor.KEY, slot))
            if sample >= WARM_UP:
                jobs.append(in_job)
                pushes.append(in_push)
    readings.add("latency.p50", percentile(jobs, 50))
    readings.add("latency.p99", percentile(jobs, 99))
    readings.add("latency.floor_p50", percentile(pushes, 50))
    readings.add("latency.floor_p99", percentile(pushes, 99))
    readings.ratio("latency.p50_vs_floor", "latency.p50", "latency.floor_p50")


def _sample(stage: Stage, child: subprocess.Popen[bytes], slot: int, send: Callable[[int], object]) -> float:
    """Milliseconds until the other process had it."""
    before = time.monotonic_ns()
    send(slot)
    time.sleep(random.uniform(*PAUSE_SECONDS))
    stage.wait_until(lambda: stage.notes[slot], "a sample arrived", child)
    return (stage.notes[slot] - before) / 1e6
