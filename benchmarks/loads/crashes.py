"""Jobs beside those of a client that kill their process, and running jobs that are cancelled."""

from __future__ import annotations

import random
import time

from benchmarks.counters import marked
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile

CANCELS = 40
OPTIONS = {"processes": ("--processes", "2"), "threads": ("--concurrency", "8")}


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    killers = 60
    for name, options in OPTIONS.items():
        alone, _ = _seconds(env, 0, 0, *options)
        others, _ = _seconds(env, killers, 0, *options)
        readings.add(f"crashes.others_{name}", others / alone)
        others, everything = _seconds(env, killers, 3, *options)
        readings.add(f"crashes.others_{name}_again", others / alone)
        readings.add(f"crashes.all_{name}", everything)
    _cancels(env, readings)


def _seconds(env: Environment, killers: int, max_crashes: int, *options: str) -> tuple[float, float]:
    """From the first of 20,000 jobs until the last of them is done, and until all jobs are over."""
    from benchmarks.jobs import kill_process, mark
    from django_rtq.core.broker.brokers import get_broker

    jobs, keys = 20_000, get_broker().keys.of("default")
    env.clear()
    mark.using(client="good").delay_many([((number,), {}) for number in range(jobs)])
    if killers:
        calls = [((), {}) for _ in range(killers)]
        kill_process.using(client="bad", max_crashes=max_crashes).delay_many(calls)
    with env.worker(*options) as worker:
        env.wait_until(lambda: marked(jobs), "the first job is done", worker)
        began = time.monotonic()
        env.wait_until(lambda: marked(jobs) == jobs, "all jobs of the others are done", worker)
        others = time.monotonic() - began
        env.wait_until(
            lambda: env.redis.hlen(keys.jobs) == env.redis.zcard(keys.dead) == killers, "all jobs are over", worker
        )
        return others, time.monotonic() - began


def _cancels(env: Environment, readings: Readings) -> None:
    from benchmarks.jobs import wait_for_cancel

    env.clear()
    took = []
    with env.worker() as worker:
        for slot in range(0, 2 * CANCELS, 2):
            job = wait_for_cancel.delay(slot)
            env.wait_until(lambda slot=slot: env.counters[slot], "the job runs", worker)  # type: ignore[misc]
            time.sleep(random.uniform(0.0, 0.1))
            before = time.monotonic_ns()
            job.cancel()
            env.wait_until(lambda slot=slot: env.counters[slot + 1], "the job has stopped", worker)  # type: ignore[misc]
            took.append((env.counters[slot + 1] - before) / 1e6)
    readings.add("crashes.cancel_p50", percentile(took, 50))
    readings.add("crashes.cancel_p99", percentile(took, 99))
