"""Limits: how exact rates are, how late starts are that waited for one, and what claims with limits cost."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from statistics import median

from benchmarks import drain
from benchmarks.counters import marked
from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings, percentile
from benchmarks.latency import PAUSE_SECONDS, sample
from benchmarks.usage import Cost

RATE, PROCESSES, WARM_UP = 1000, 4, 2000  # starts a second; starts before it is measured
SPACED, SPACE_MS = 200, 50
ONE_BY_ONE, RUN_MS = 200, 20  # jobs of a client that may run one at a time, and how long each takes
WORKER = "limits:1:benchmark"
FREE, JOBS_OF_FREE = 10, 200  # clients that may start jobs beside those that are blocked


def measure(env: Environment, readings: Readings) -> None:
    """One round."""
    readings.add("limits.rate", _starts_per_second(env))
    late = _lateness(env)
    readings.add("limits.late_p50", percentile(late, 50))
    readings.add("limits.late_p99", percentile(late, 99))
    at_once, after_another = _starts(env)
    readings.add("limits.start_p50", percentile(at_once, 50))
    readings.add("limits.place_p50", percentile(after_another, 50))
    readings.ratio("limits.place_vs_start", "limits.place_p50", "limits.start_p50")
    _drain(env, has_limits=False).record(readings, "limits.none")
    _drain(env, has_limits=True).record(readings, "limits.drain")
    readings.ratio("limits.drain_vs_none", "limits.drain", "limits.none")
    costs = _claims(env)
    readings.add("limits.claim_plain", costs["plain"])
    readings.add("limits.claim", costs["free"])
    readings.ratio("limits.claim_vs_plain", "limits.claim", "limits.claim_plain")
    readings.add("limits.claim_blocked", costs["blocked"])
    readings.ratio("limits.claim_blocked_vs_none", "limits.claim_blocked", "limits.claim")


def _starts_per_second(env: Environment) -> float:
    """Of a queue with more jobs than its rate allows, and several processes."""
    from benchmarks.jobs import take
    from django_rtq import rtq

    seconds = 10 if env.is_quick else 30
    env.clear()
    rtq.queues["default"].limit(rate=f"{RATE}/s")
    jobs = WARM_UP + RATE * (seconds + 30)
    take.delay_many([((number, ""), {}) for number in range(jobs)])
    with env.worker("--processes", str(PROCESSES)) as worker:
        env.wait_until(lambda: marked(jobs) >= WARM_UP, "the first jobs ran", worker)
        before, began = marked(jobs), time.monotonic()
        time.sleep(seconds)
        return (marked(jobs) - before) / (time.monotonic() - began)


def _lateness(env: Environment) -> list[float]:
    """Ms of each start behind its time: so long after the start before it as the rate says."""
    from benchmarks.jobs import record_start
    from django_rtq import rtq

    env.clear()
    rtq.queues["default"].limit_clients(rate=f"{1000 // SPACE_MS}/s", burst=1)
    record_start.delay_many([((slot,), {}) for slot in range(1, SPACED + 1)])
    with env.worker() as worker:
        env.wait_until(lambda: env.counters[SPACED], "all jobs started", worker)
    starts = env.counters[1 : SPACED + 1]
    return [(after - before) / 1e6 - SPACE_MS for before, after in pairwise(starts)]


def _starts(env: Environment) -> tuple[list[float], list[float]]:
    """Of a client that may run one job at a time: ms from delay() to the start of a job that waited for nothing, and
    from the end of a job to the start of the next one, which waited for it."""
    from benchmarks.jobs import record_run, record_start
    from django_rtq import rtq

    env.clear()
    rtq.queues["default"].limit_clients(max_running=1)
    with env.worker("--processes", "2") as worker:
        at_once = [
            sample(env, worker, slot, record_start.delay, PAUSE_SECONDS[""]) for slot in range(1, ONE_BY_ONE + 1)
        ]
        first, last = ONE_BY_ONE + 2, 3 * ONE_BY_ONE
        record_run.delay_many([((slot, RUN_MS), {}) for slot in range(first, last + 1, 2)])
        env.wait_until(lambda: env.counters[last + 1], "all jobs ended", worker)
    times = env.counters[first : last + 2]
    return at_once, [(start - end) / 1e6 for end, start in zip(times[1:-1:2], times[2::2], strict=True)]


def _drain(env: Environment, *, has_limits: bool) -> Cost:
    """Jobs of many clients. Each has a limit of running jobs and a rate, and reaches neither."""
    from benchmarks.jobs import noop_of_account
    from django_rtq import rtq

    def set_limits() -> None:
        rtq.queues["default"].limit_clients(max_running=1000, rate="10000/s")

    return drain.drain(env, noop_of_account, prepare=set_limits if has_limits else None)


def _claims(env: Environment) -> dict[str, float]:
    """Median µs of claiming one job: from a queue without limits, from one with limits that nobody reaches, from one
    with many blocked clients beside these."""
    from django_rtq import rtq
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    env.clear()
    clients = 20_000 if env.is_quick else 100_000
    for queue, blocked in (("free", 0), ("blocked", clients)):
        rtq.queues[queue].limit_clients(max_running=0)
        for number in range(FREE):
            rtq.clients[f"free-{number}"].limit(queue, max_running=10)
        _fill(queue, "blocked", blocked, 10)
        for_workers(get_broker()).sign_on([queue], WORKER)
        while for_workers(get_broker()).claim(WORKER, [queue], 500).claimed:  # each blocks some
            pass
        _fill(queue, "free", FREE, JOBS_OF_FREE)
    for_workers(get_broker()).sign_on(["plain"], WORKER)
    _fill("plain", "free", FREE, JOBS_OF_FREE)
    costs: dict[str, list[float]] = {"plain": [], "free": [], "blocked": []}
    for _ in range(FREE * JOBS_OF_FREE // 2):
        for queue in random.sample(list(costs), len(costs)):  # the first call finds other data in the caches
            costs[queue].append(_claim_and_ack(queue))
    env.clear()
    return {queue: median(found) for queue, found in costs.items()}


def _fill(queue: str, name: str, clients: int, jobs: int) -> None:
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.messages import NewJob
    from django_rtq.core.jobs.job import new_job_id

    body = '{"task":"benchmarks.jobs.noop","args":[7,42]}'
    total = clients * jobs
    for start in range(0, total, 500):
        numbers = range(start, min(start + 500, total))
        new = [NewJob(new_job_id(), 0, 3, f"{name}-{number % clients}", "", "", "", body) for number in numbers]
        get_broker().enqueue(queue, new)


def _claim_and_ack(queue: str) -> float:
    """µs of the claim, without the acknowledgement."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.settlement import Settlement
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    started = time.perf_counter()
    claimed = broker.claim(WORKER, [queue], 1).claimed
    seconds = time.perf_counter() - started
    if not claimed or len(claimed[0].ids) != 1:
        raise MeasurementFailed(f"There was no job to claim in queue {queue}.")
    broker.settle(WORKER, queue, Settlement(ack=[claimed[0].ids[0], 0, ""]))
    return seconds * 1e6
