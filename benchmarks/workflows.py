"""Workflows: what a job of one costs more than a plain job, and how fast steps follow each other."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from benchmarks import latency
from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile

SAMPLES = 100
MEMBERS = 10  # of a step before a callback
CHAIN = 1000


def measure(env: Environment, readings: Readings) -> None:
    """One round: each way once."""
    _measure_making(env, readings)
    _measure_draining(env, readings)
    _measure_following(env, readings)


def _ways(task: Any, jobs: int) -> dict[str, Callable[[], object]]:
    """To enqueue so many jobs: as members of a workflow, and plain ones."""
    from django_rtq import workflow

    def make() -> None:
        with workflow("bench") as flow:
            flow.add_many(task, (((7, number), {}) for number in range(jobs)))

    return {"workflows": make, "plain": lambda: task.delay_many([((7, number), {}) for number in range(jobs)])}


def _measure_making(env: Environment, readings: Readings) -> None:
    from benchmarks.jobs import noop

    jobs, names = 20_000 if env.is_quick else 100_000, {"workflows": "made", "plain": "delay_many"}
    for way in _ways(noop, 1).values():
        way()  # Redis loads the scripts
    for name, make in _ways(noop, jobs).items():
        env.clear()
        before = env.redis.info("memory")["used_memory"]
        started = time.perf_counter()
        make()
        readings.add(f"workflows.{names[name]}", jobs / (time.perf_counter() - started))
        readings.add(f"workflows.bytes_{name}", (env.redis.info("memory")["used_memory"] - before) / jobs)
    readings.ratio("workflows.made_vs_delay_many", "workflows.made", "workflows.delay_many")
    more = readings.rounds["workflows.bytes_workflows"][-1] - readings.rounds["workflows.bytes_plain"][-1]
    readings.add("workflows.bytes_more", more)


def _measure_draining(env: Environment, readings: Readings) -> None:
    from benchmarks import jobs as tasks
    from django_rtq.broker.brokers import get_broker

    jobs, key = 100_000, get_broker().keys.of("default").jobs
    for results, task in (("", tasks.noop), ("_results", tasks.return_number)):
        for name, make in _ways(task, jobs).items():
            env.clear()
            make()
            cost = run_backlog(env, jobs, left=lambda: int(env.redis.hlen(key)))
            cost.record(readings, f"workflows.{'drain' if name == 'workflows' else 'plain'}{results}")
        readings.ratio(f"workflows.drain{results}_vs_plain", f"workflows.drain{results}", f"workflows.plain{results}")


def _measure_following(env: Environment, readings: Readings) -> None:
    """From the start of the last job of a step to that of the next step, in turn with delay(); and a long chain."""
    from benchmarks.jobs import noop, record_start
    from django_rtq import workflow

    env.clear()
    callbacks: list[float] = []
    single: list[float] = []
    with env.worker() as worker:
        for number in range(latency.WARM_UP + SAMPLES):
            slot = 1 + number * (MEMBERS + 2)
            last = slot + MEMBERS
            alone = latency.sample(env, worker, last + 1, record_start.delay, latency.PAUSE_SECONDS[""])
            with workflow("bench") as flow:
                flow.after(flow.map(record_start, range(slot, last))).add(record_start, last)
            time.sleep(random.uniform(*latency.PAUSE_SECONDS[""]))
            env.wait_until(lambda: env.counters[last], "a callback has started", worker)  # noqa: B023
            if number >= latency.WARM_UP:
                single.append(alone)
                callbacks.append((env.counters[last] - max(env.counters[slot:last])) / 1e6)
        started = time.monotonic_ns()
        with workflow("bench") as flow:
            step = flow.add(noop, 7, 0)
            for number in range(1, CHAIN - 1):
                step = flow.after(step).add(noop, 7, number)
            flow.after(step).add(record_start, 0)
        env.wait_until(lambda: env.counters[0], "a chain has ended", worker)
    for percent in (50, 99):
        readings.add(f"workflows.callback_p{percent}", percentile(callbacks, percent))
    readings.add("workflows.latency_p50", percentile(single, 50))
    readings.add("workflows.chain_step", (env.counters[0] - started) / 1e6 / CHAIN)
    readings.ratio("workflows.callback_vs_latency", "workflows.callback_p50", "workflows.latency_p50")
    readings.ratio("workflows.chain_vs_latency", "workflows.chain_step", "workflows.latency_p50")
