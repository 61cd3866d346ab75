"""Memory: what a waiting small job takes in Redis."""

from __future__ import annotations

from benchmarks.figures import Readings
from benchmarks.stage import Stage

JOBS = 100_000


def measure(stage: Stage, readings: Readings) -> None:
    """One round: how much used_memory grows, per job."""
    from benchmarks.jobs import noop

    stage.clear()
    noop.delay_many([((7, 42), {})])  # what is there once for all, and buffers of connections
    before = _used(stage)
    for _ in range(JOBS // 1000):
        noop.delay_many([((7, 42), {})] * 1000)
    readings.add("memory.waiting_job", (_used(stage) - before) / JOBS)
    stage.clear()


def _used(stage: Stage) -> int:
    return int(stage.redis.info("memory")["used_memory"])
