"""The memory of a small waiting job in Redis."""

from __future__ import annotations

from benchmarks.environment import Environment
from benchmarks.figures import Readings

JOBS = 100_000


def measure(env: Environment, readings: Readings) -> None:
    """One round: growth of used_memory per job."""
    from benchmarks.jobs import noop

    env.clear()
    noop.delay_many([((7, 42), {})])  # allocates what is shared by all jobs, and connection buffers
    before = _used(env)
    for _ in range(JOBS // 1000):
        noop.delay_many([((7, 42), {})] * 1000)
    readings.add("memory.waiting_job", (_used(env) - before) / JOBS)
    env.clear()


def _used(env: Environment) -> int:
    return int(env.redis.info("memory")["used_memory"])
