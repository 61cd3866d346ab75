"""Fairness: when a few jobs of one client start that were enqueued after very many of another."""

from __future__ import annotations

from benchmarks.environment import Environment
from benchmarks.figures import Readings

FLOOD = 20_000
FEW = 10
BUSY_JOBS = 3000  # jobs done by a worker that counts as busy


def measure(env: Environment, readings: Readings) -> None:
    """One round: with a worker that starts afterwards, and with one that is busy."""
    readings.add("fairness.last_place", _started_afterwards(env))
    readings.add("fairness.last_place_busy", _busy_worker(env))


def _started_afterwards(env: Environment) -> float:
    env.clear()
    _flood(FLOOD)
    _few()
    with env.worker("--burst") as worker:
        env.wait_until(lambda: env.counters[0] == FLOOD + FEW, "all jobs ran", worker)
        env.finish(worker)
    return max(env.counters[1 : FEW + 1])


def _busy_worker(env: Environment) -> float:
    """Places are counted from just before they are enqueued: jobs that the worker has claimed by then run first."""
    env.clear()
    _flood(FLOOD + 2 * BUSY_JOBS)
    with env.worker("--burst") as worker:
        env.wait_until(lambda: env.counters[0] >= BUSY_JOBS, "the worker is busy", worker)
        before = env.counters[0]
        _few()
        env.finish(worker)
    return max(env.counters[1 : FEW + 1]) - before


def _flood(jobs: int) -> None:
    from benchmarks.jobs import record_place

    for _ in range(jobs // 1000):
        record_place.using(client="flood").delay_many([((0,), {})] * 1000)


def _few() -> None:
    from benchmarks.jobs import record_place

    record_place.using(client="few").delay_many([((slot,), {}) for slot in range(1, FEW + 1)])
