"""Workflows: what a job of one costs more than a plain job, and how fast steps follow each other. Jobs that wait."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from benchmarks import latency
from benchmarks.admin import Probe
from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile

SAMPLES = 100
MEMBERS = 10  # of a step before a callback
CHAIN = 1000
WORKER = "workflows:1:benchmark"


def measure(env: Environment, readings: Readings) -> None:
    """One round: each way once."""
    _measure_making(env, readings)
    _measure_draining(env, readings)
    _measure_following(env, readings)
    _measure_sending(env, readings)


def measure_large(env: Environment, readings: Readings) -> None:
    """Very many members, steps, workflows, and jobs that sleep or wait."""
    _measure_sleeping(env, readings)
    _measure_scripts(env, readings)
    env.clear()


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
    from django_rtq.core.broker.brokers import get_broker

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
    from benchmarks.jobs import record_start
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
        _make_chain(0)
        env.wait_until(lambda: env.counters[0], "a chain has ended", worker)
    for percent in (50, 99):
        readings.add(f"workflows.callback_p{percent}", percentile(callbacks, percent))
    readings.add("workflows.latency_p50", percentile(single, 50))
    readings.add("workflows.chain_step", (env.counters[0] - started) / 1e6 / CHAIN)
    readings.ratio("workflows.callback_vs_latency", "workflows.callback_p50", "workflows.latency_p50")
    readings.ratio("workflows.chain_vs_latency", "workflows.chain_step", "workflows.latency_p50")


def _make_chain(slot: int) -> None:
    """Steps of one job each; the last one records its start."""
    from benchmarks.jobs import noop, record_start
    from django_rtq import workflow

    with workflow("chain") as flow:
        step = flow.add(noop, 7, 0)
        for number in range(1, CHAIN - 1):
            step = flow.after(step).add(noop, 7, number)
        flow.after(step).add(record_start, slot)


def _measure_sending(env: Environment, readings: Readings) -> None:
    """From send() to the line behind wait(), in turn with delay()."""
    from benchmarks.jobs import record_event, record_start

    env.clear()
    events: list[float] = []
    single: list[float] = []
    with env.worker() as worker:
        for number in range(latency.WARM_UP + SAMPLES):
            slot = 1 + 2 * number
            alone = latency.sample(env, worker, slot, record_start.delay, latency.PAUSE_SECONDS[""])
            job = record_event.delay(slot + 1)
            env.wait_until(lambda: job.refresh().state == "scheduled", "a job waits", worker)  # noqa: B023
            time.sleep(random.uniform(*latency.PAUSE_SECONDS[""]))
            event = latency.sample(env, worker, slot + 1, lambda _: job.send("go"), latency.PAUSE_SECONDS[""])  # noqa: B023
            if number >= latency.WARM_UP:
                single.append(alone)
                events.append(event)
    readings.add("workflows.send_p50", percentile(events, 50))
    readings.add("workflows.send_vs_latency", percentile(events, 50) / percentile(single, 50))


def _measure_sleeping(env: Environment, readings: Readings) -> None:
    """What jobs take in Redis that sleep, or wait for an event, more than delayed ones."""
    from benchmarks.jobs import noop
    from django_rtq.core.jobs.record import Wait

    jobs = 20_000 if env.is_quick else 100_000
    calls = [((7, number), {}) for number in range(jobs)]
    delayed = noop.using(run_after=3600)
    delayed.delay_many(calls[:1])
    _suspend(Wait(0, 1, 0, ""))
    ways: dict[str, Callable[[], object]] = {
        "delayed": lambda: delayed.delay_many(calls),
        "sleeping": lambda: (noop.delay_many(calls), _suspend(Wait(0, 1, 0, ""))),
        "waiting": lambda: (noop.delay_many(calls), _suspend(Wait(0, 0, 0, "1 approved"))),
    }
    used = {}
    for name, make in ways.items():
        env.clear()
        before = env.redis.info("memory")["used_memory"]
        make()
        used[name] = (env.redis.info("memory")["used_memory"] - before) / jobs
    for name in ("sleeping", "waiting"):
        readings.add(f"workflows.{name}_bytes_more", used[name] - used["delayed"])


def _suspend(wait: Any) -> None:
    """Claim all jobs that wait, and let them go on in an hour."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.settlement import Report, Settlement
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    broker.sign_on(["default"], WORKER)
    while claimed := broker.claim(WORKER, ["default"], 500).claimed:
        settlement = Settlement()
        for job_id in claimed[0].ids:
            settlement.add(Report("suspend", job_id, 3_600_000, wait.text.encode()))
        broker.settle(WORKER, "default", settlement)
    broker.sign_off(["default"], WORKER)


def _measure_scripts(env: Environment, readings: Readings) -> None:
    """A step of very many jobs and a callback, a chain, and very many workflows that are open."""
    from benchmarks.jobs import noop, record_start
    from django_rtq import workflow

    members, flows = (100_000, 1_000) if env.is_quick else (1_000_000, 10_000)
    env.clear()
    with Probe(env) as probe:
        for _ in range(flows):
            with workflow("open") as flow:
                flow.after(flow.add(noop.using(queue_name="nobody"), 7, 0)).add(noop, 7, 0)
        _make_chain(3)
        with workflow("large") as flow:  # each job overwrites when the one before has started
            flow.after(flow.map(record_start, repeat(1, members))).add(record_start, 2)
        with env.worker() as worker:
            env.wait_until(lambda: env.counters[2] and env.counters[3], "all have run", worker, seconds=300, every=0.1)
    readings.remark(f"workflows: {members:,} jobs of one step, a chain of {CHAIN:,}, {flows:,} workflows are open")
    readings.add("workflows.callback_large", (env.counters[2] - env.counters[1]) / 1e6)
    readings.add("workflows.slowest_script", probe.longest_ms)
