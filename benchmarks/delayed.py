"""Delayed jobs: how late they start, the rate when many are due at once, and the cost of jobs due in a month."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from benchmarks import drain
from benchmarks.counting_proxy import CountingProxy
from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings, percentile
from benchmarks.processes import cpu_seconds

JOBS, FROM_MS, TO_MS = 200, 1000, 5000
SAMPLE_SECONDS = 0.01
FLOOD, FLOOD_SECONDS = 20_000, 3.0
BEHIND_MS = 10  # the other client's job is due so much later than the flood
FAR, SETTLE_SECONDS = 100_000, 6.0


def measure(env: Environment, readings: Readings) -> None:
    """One round: jobs due one by one, a flood due at once, and one job of another client behind it."""
    _measure_lateness(env, readings)
    _measure_flood(env, readings)
    _measure_behind_flood(env, readings)
    if "drain.one_client" not in readings.rounds:
        from benchmarks.jobs import noop

        readings.add("drain.one_client", drain.drain(env, noop).rate)
    readings.ratio("delayed.flood_vs_drain", "delayed.flood", "drain.one_client")


def _measure_lateness(env: Environment, readings: Readings) -> None:
    from benchmarks.jobs import record_start

    env.clear()
    with env.worker() as worker:
        record_start.delay(1)
        env.wait_until(lambda: env.counters[1], "the worker runs jobs", worker)
        ahead_ns = time.time_ns() - time.monotonic_ns()  # jobs record the monotonic clock, and are due by the other
        now_ms = time.time_ns() // 1_000_000
        dues = {slot: now_ms + random.randint(FROM_MS, TO_MS) for slot in range(2, 2 + JOBS)}
        for slot, due_ms in dues.items():
            record_start.using(run_after=_datetime(due_ms)).delay(slot)
        env.wait_until(lambda: all(env.counters[slot] for slot in dues), "all delayed jobs started", worker)
    late = [(env.counters[slot] + ahead_ns) / 1e6 - due_ms for slot, due_ms in dues.items()]
    readings.add("delayed.p50", percentile(late, 50))
    readings.add("delayed.p99", percentile(late, 99))
    readings.add("delayed.early", sum(ms < 0 for ms in late))


def _measure_flood(env: Environment, readings: Readings) -> None:
    """Measured from the due time until the last job is acknowledged."""
    from benchmarks.jobs import noop
    from django_rtq.core.broker.brokers import get_broker

    env.clear()
    key = get_broker().keys.of("default").jobs
    with env.worker() as worker:
        due_ms = time.time_ns() // 1_000_000 + int(FLOOD_SECONDS * 1000)
        _enqueue_flood(noop, due_ms)
        while env.redis.hlen(key):
            time.sleep(SAMPLE_SECONDS)
            if worker.poll() is not None or time.time_ns() / 1e6 > due_ms + 60_000:
                raise MeasurementFailed(f"The flood was not finished within 60 s.\n{env.log()}")
        seconds = time.time_ns() / 1e9 - due_ms / 1000
    readings.add("delayed.flood", FLOOD / seconds)


def _measure_behind_flood(env: Environment, readings: Readings) -> None:
    from benchmarks.jobs import noop, record_start

    env.clear()
    with env.worker() as worker:
        record_start.delay(1)
        env.wait_until(lambda: env.counters[1], "the worker runs jobs", worker)
        ahead_ns = time.time_ns() - time.monotonic_ns()
        flood_ms = time.time_ns() // 1_000_000 + int(FLOOD_SECONDS * 1000)
        due_ms = flood_ms + BEHIND_MS
        record_start.using(client="single", run_after=_datetime(due_ms)).delay(2)
        _enqueue_flood(noop.using(client="flood"), flood_ms)
        env.wait_until(lambda: env.counters[2], "the job behind the flood started", worker)
    readings.add("delayed.behind_flood_ms", (env.counters[2] + ahead_ns) / 1e6 - due_ms)


def _enqueue_flood(flood: Any, due_ms: int) -> None:
    """Enqueue the flood before its due time."""
    flood = flood.using(run_after=_datetime(due_ms))
    for start in range(0, FLOOD, 5000):
        flood.delay_many([((7, number), {}) for number in range(start, start + 5000)])
    if time.time_ns() // 1_000_000 > due_ms:
        raise MeasurementFailed(f"Enqueueing {FLOOD} jobs took longer than {FLOOD_SECONDS} s.")


def measure_far(env: Environment, readings: Readings) -> None:
    """Once per run: a scheduler whose jobs are due in a month."""
    from benchmarks.jobs import noop

    seconds = 30 if env.is_quick else 60
    env.clear()
    far = noop.using(run_after=timedelta(days=30))
    for start in range(0, FAR, 5000):
        far.delay_many([((7, number), {}) for number in range(start, start + 5000)])
    with CountingProxy(env.server.port) as proxy, _scheduler(env, proxy.url) as scheduler:
        env.wait_until(lambda: proxy.counted()[0] > 2, "the scheduler has queried Redis", scheduler)
        time.sleep(SETTLE_SECONDS)
        trips, _ = proxy.counted()
        cpu, started = cpu_seconds([scheduler.pid]), time.monotonic()
        time.sleep(seconds)
        spent, (trips_after, _) = cpu_seconds([scheduler.pid]) - cpu, proxy.counted()
        minutes = (time.monotonic() - started) / 60
    readings.add("delayed.far_round_trips", (trips_after - trips) / minutes)
    readings.add("delayed.far_cpu", spent / minutes)


def _scheduler(env: Environment, url: str) -> Any:
    return env.process("-m", "django", "rtq_scheduler", "-v", "0", variables={"RTQ_BENCH_REDIS": url})


def _datetime(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)
