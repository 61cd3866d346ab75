"""Workers with 1, 20 and 100 queues: what a job of the first one costs, and the latency of the last one."""

from __future__ import annotations

import itertools
import random
import time

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile
from benchmarks.loads.figures import QUEUES

MS = 6
SAMPLES, WARM_UP = 200, 10


def measure(env: Environment, readings: Readings) -> None:
    """One round: ordinary jobs one at a time, then jobs on idle workers."""
    from benchmarks.jobs import nap

    jobs = 200 if env.is_quick else 400
    for number in QUEUES:
        env.clear()
        names = [f"queue-{n}" for n in range(number)]
        nap.using(queue_name=names[0]).delay_many([((n, MS), {}) for n in range(jobs)])
        cost = run_backlog(env, jobs, "--queues", ",".join(names), queue=names[0])
        cost.record(readings, f"queues.{number}")
    _measure_latency(env, readings)
    readings.ratio("queues.latency_100_vs_1", "queues.latency_100", "queues.latency_1")


def _measure_latency(env: Environment, readings: Readings) -> None:
    """Idle workers with so many queues in turn: from before delay() on the last of them to the job's first line."""
    from benchmarks.jobs import record_start

    env.clear()
    slots = itertools.count(1)
    names = {number: [f"of-{number}-{n}" for n in range(number)] for number in QUEUES}
    samples: dict[int, list[float]] = {number: [] for number in QUEUES}
    with (
        env.worker("--queues", ",".join(names[1])) as one,
        env.worker("--queues", ",".join(names[20])) as twenty,
        env.worker("--queues", ",".join(names[100])) as hundred,
    ):
        workers = {1: one, 20: twenty, 100: hundred}
        for sample in range(WARM_UP + SAMPLES):
            for number, worker in workers.items():
                task, slot = record_start.using(queue_name=names[number][-1]), next(slots)
                before = time.monotonic_ns()
                task.delay(slot)
                time.sleep(random.uniform(0.005, 0.010))
                env.wait_until(lambda slot=slot: env.counters[slot], "a sample arrived", worker)  # type: ignore[misc]
                if sample >= WARM_UP:
                    samples[number].append((env.counters[slot] - before) / 1e6)
    for number in QUEUES:
        readings.add(f"queues.latency_{number}", percentile(samples[number], 50))
