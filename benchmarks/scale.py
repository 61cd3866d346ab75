"""The cost of claim and enqueue with few or very many waiting jobs, of one client or of thousands."""

from __future__ import annotations

import random
import time
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.environment import Environment, MeasurementFailed, print_progress
from benchmarks.figures import Readings

if TYPE_CHECKING:
    from django_rtq.core.broker.messages import NewJob

WORKER = "scale:1:benchmark"
BODY = '{"task":"benchmarks.jobs.noop","args":[7,42]}'


def measure(env: Environment, readings: Readings, rounds: int) -> None:
    """All rounds, on queues that are filled once: one call to each queue in turn."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    env.clear()
    broker = for_workers(get_broker())
    sizes = _sizes(is_quick=env.is_quick)
    for queue, (jobs, clients) in sizes.items():
        _fill(queue, jobs, clients)
    broker.sign_on(sizes, WORKER)
    readings.remark("scale: " + "; ".join(f"{queue}: {jobs:,} jobs of {n:,}" for queue, (jobs, n) in sizes.items()))
    calls = 300 if env.is_quick else 1000
    _costs(sizes, 50)  # warms up connections, scripts and caches
    for _ in range(rounds):
        claim, enqueue = _costs(sizes, calls)
        for verb, costs in (("claim", claim), ("enqueue", enqueue)):
            for name in ("small", "large", "clients"):
                readings.add(f"scale.{verb}_{name}", costs[name])
            readings.add(f"scale.{verb}_spread", max(costs.values()) / min(costs.values()))
    env.clear()


def _sizes(*, is_quick: bool) -> dict[str, tuple[int, int]]:
    """Queue -> number of waiting jobs, number of clients."""
    if is_quick:
        return {"small": (1000, 1), "middle": (10_000, 1), "large": (100_000, 1), "clients": (20_000, 10_000)}
    return {"small": (1000, 1), "middle": (100_000, 1), "large": (1_000_000, 1), "clients": (100_000, 10_000)}


def _fill(queue: str, jobs: int, clients: int) -> None:
    from django_rtq.core.broker.brokers import get_broker

    started = time.perf_counter()
    numbers = iter(range(jobs))
    while part := list(islice(numbers, 500)):
        get_broker().enqueue(queue, [_job(number % clients) for number in part])
    print_progress(f"  {queue}: {jobs:,} jobs enqueued in {time.perf_counter() - started:.1f} s")


def _job(client: int) -> NewJob:
    from django_rtq.core.broker.messages import NewJob
    from django_rtq.core.jobs.job import new_job_id

    return NewJob(new_job_id(), 0, 3, f"client-{client}", "", "", "", BODY)


def _costs(sizes: dict[str, tuple[int, int]], calls: int) -> tuple[dict[str, float], dict[str, float]]:
    """Median µs of claiming and of enqueueing one job, by queue. As many jobs wait afterwards as before."""
    claims: dict[str, list[float]] = {queue: [] for queue in sizes}
    enqueues: dict[str, list[float]] = {queue: [] for queue in sizes}
    order = list(sizes)
    for _ in range(calls):
        random.shuffle(order)  # the first call finds other data in the caches
        for queue in order:
            claims[queue].append(_claim_and_ack(queue))
            enqueues[queue].append(_enqueue(queue, random.randrange(sizes[queue][1])))
    return (
        {queue: median(costs) for queue, costs in claims.items()},
        {queue: median(costs) for queue, costs in enqueues.items()},
    )


def _claim_and_ack(queue: str) -> float:
    """µs of the claim, without the acknowledgement."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.settlement import Settlement
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    started = time.perf_counter()
    (claimed,) = broker.claim(WORKER, [queue], 1).claimed
    spent = time.perf_counter() - started
    if len(claimed.ids) != 1:
        raise MeasurementFailed(f"A claim from {queue} brought {len(claimed.ids)} jobs, not one: {claimed.status}")
    broker.settle(WORKER, queue, Settlement(ack=[claimed.ids[0], 1000, ""]))
    return spent * 1e6


def _enqueue(queue: str, client: int) -> float:
    from django_rtq.core.broker.brokers import get_broker

    job = _job(client)
    started = time.perf_counter()
    get_broker().enqueue(queue, [job])
    return (time.perf_counter() - started) * 1e6
