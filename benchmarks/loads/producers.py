"""delay() from one and from ten threads of one process, as in a web server, beside a bare RPUSH by redis-py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile
from benchmarks.loads.figures import THREADS
from benchmarks.usage import Cost, cost_since, mean_of, usage_at_start

SLICE = 1000  # calls in a row
RECORD = '{"task":"benchmarks.jobs.noop","args":[7,42]}'


def measure(env: Environment, readings: Readings) -> None:
    """One round: slices of both ways in turn, without a worker."""
    from benchmarks.jobs import noop

    ways: dict[str, Callable[[], object]] = {
        "delay": lambda: noop.delay(7, 42),
        "rpush": lambda: env.redis.rpush("producers", RECORD),
    }
    slices = 4 if env.is_quick else 20
    for threads in THREADS:
        env.clear()
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(slices + 1):
            for name, call in ways.items():
                cost, ms = _slice(env, call, threads)
                if turn:  # the first turn connects
                    costs[name].append(cost)
                    spent[name].extend(ms)
        for name in ways:
            figure = f"producers.{name}_{threads}"
            mean_of(costs[name]).record(readings, figure)
            readings.add(f"{figure}_p50", percentile(spent[name], 50))
            readings.add(f"{figure}_p99", percentile(spent[name], 99))
        readings.ratio(f"producers.vs_rpush_{threads}", f"producers.delay_{threads}", f"producers.rpush_{threads}")


def _slice(env: Environment, call: Callable[[], object], threads: int) -> tuple[Cost, list[float]]:
    """The cost of some calls, with the CPU of this process, and the ms of each."""
    start, cpu = usage_at_start(env.redis, (), 0), time.process_time()
    spent = _produce(call, threads, SLICE // threads)
    cpu = time.process_time() - cpu
    cost = cost_since(start, env.redis, (), SLICE)
    return cost._replace(worker_cpu=cpu / SLICE * 1e6), spent


def _produce(call: Callable[[], object], threads: int, calls: int) -> list[float]:
    """The ms of each call, of all threads."""
    spent: list[float] = []

    def run() -> None:
        mine = []
        for _ in range(calls):
            before = time.perf_counter()
            call()
            mine.append((time.perf_counter() - before) * 1000)
        spent.extend(mine)

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return spent
