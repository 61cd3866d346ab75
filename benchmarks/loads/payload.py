"""Arguments of 1, 10 and 100 kB: enqueued and run, beside a bare RPUSH and LPOP of the same bytes."""

from __future__ import annotations

import json
import time

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.loads.figures import PAYLOADS
from benchmarks.usage import Cost, cost_since, mean_of, usage_at_start

SLICE = 50  # calls in a row
KEY = "payload"


def measure(env: Environment, readings: Readings) -> None:
    """One round: calls and pushes in turn, then a worker, and bare pops."""
    for kb in PAYLOADS:
        text = "abcdefghij" * (kb * 100)
        env.clear()
        turns = (4 if env.is_quick else 20) if kb == 100 else (20 if env.is_quick else 60)
        calls, pushes = [], []
        for turn in range(turns):
            calls.append(_delay(env, turn * SLICE, text))
            pushes.append(_push(env, text))
        for name, costs in (("in", calls), ("push", pushes)):
            mean_of(costs).record(readings, f"payload.{name}_{kb}kb")
        readings.ratio(f"payload.in_{kb}kb_vs_push", f"payload.in_{kb}kb", f"payload.push_{kb}kb")
        _measure_out(env, readings, kb, text)


def _measure_out(env: Environment, readings: Readings, kb: int, text: str) -> None:
    """A worker with so many jobs that it takes about a second, and bare pops."""
    from benchmarks.jobs import take

    jobs = {1: 20_000, 10: 10_000, 100: 1500}[kb] // (2 if env.is_quick else 1)
    env.clear()
    for start in range(0, jobs, SLICE):
        take.delay_many([((number, text), {}) for number in range(start, start + SLICE)])
    run_backlog(env, jobs).record(readings, f"payload.out_{kb}kb")
    pops = jobs // 5
    for _ in range(pops):
        env.redis.rpush(KEY, _record(0, text))
    started = time.perf_counter()
    for _ in range(pops):
        json.loads(env.redis.lpop(KEY))  # type: ignore[arg-type]
    readings.add(f"payload.pop_{kb}kb", pops / (time.perf_counter() - started))
    readings.ratio(f"payload.out_{kb}kb_vs_pop", f"payload.out_{kb}kb", f"payload.pop_{kb}kb")


def _record(number: int, text: str) -> str:
    return json.dumps({"task": "benchmarks.jobs.take", "args": [number, text]})


def _delay(env: Environment, first: int, text: str) -> Cost:
    """One slice of calls."""
    from benchmarks.jobs import take

    start, cpu = usage_at_start(env.redis, (), 0), time.process_time()
    for number in range(first, first + SLICE):
        take.delay(number, text)
    cpu = time.process_time() - cpu
    return cost_since(start, env.redis, (), SLICE)._replace(worker_cpu=cpu / SLICE * 1e6)


def _push(env: Environment, text: str) -> Cost:
    """One slice of pushes. Each has to make its JSON, as each call does."""
    start, cpu = usage_at_start(env.redis, (), 0), time.process_time()
    for number in range(SLICE):
        env.redis.rpush(KEY, _record(number, text))
    cpu = time.process_time() - cpu
    return cost_since(start, env.redis, (), SLICE)._replace(worker_cpu=cpu / SLICE * 1e6)
