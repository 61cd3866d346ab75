"""delay() and get(): the time until a caller has the result of a job, beside what it consists of."""

from __future__ import annotations

import random
import threading
import time

from benchmarks.environment import Environment
from benchmarks.figures import Readings, percentile
from benchmarks.latency import BarePush, sample

CALLS, WARM_UP = 200, 20
CALLERS = 10
PAUSE_SECONDS = (0.003, 0.008)


def measure(env: Environment, readings: Readings) -> None:
    """One round: one caller in turn with plain latency and the bare push, then ten callers."""
    from benchmarks.jobs import record_start

    env.clear()
    calls: list[float] = []
    parts: list[float] = []
    cpu = 0.0
    with env.worker() as worker, BarePush(env) as bare:
        for number in range(WARM_UP + CALLS):
            cpu_before = time.process_time()
            spent = _call(number)
            cpu_spent = time.process_time() - cpu_before
            time.sleep(random.uniform(*PAUSE_SECONDS))
            part = sample(env, worker, 1 + 2 * number, record_start.delay, PAUSE_SECONDS)
            part += bare.sample(2 + 2 * number, PAUSE_SECONDS)
            if number >= WARM_UP:
                calls.append(spent)
                parts.append(part)
                cpu += cpu_spent
        readings.add("get.p50", percentile(calls, 50))
        readings.add("get.p99", percentile(calls, 99))
        readings.add("get.parts_p50", percentile(parts, 50))
        readings.ratio("get.p50_vs_parts", "get.p50", "get.parts_p50")
        readings.add("get.caller_cpu", cpu / CALLS * 1e6)
        readings.add("get.ten_callers", _rate_of_callers())


def _rate_of_callers() -> float:
    """Calls per second of ten threads, without pauses."""
    threads = [threading.Thread(target=lambda: [_call(number) for number in range(CALLS)]) for _ in range(CALLERS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return CALLERS * CALLS / (time.perf_counter() - started)


def _call(number: int) -> float:
    """Milliseconds of delay() and get()."""
    from benchmarks.jobs import add_one

    before = time.perf_counter()
    assert add_one.delay(number).get(timeout=60) == number + 1
    return (time.perf_counter() - before) * 1000
