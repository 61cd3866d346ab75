"""Throughput of a real worker with no-op jobs, without its start and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.usage import Cost

CLIENTS = 1000


def measure(env: Environment, readings: Readings) -> None:
    """One round: each variant once."""
    from benchmarks import jobs

    ways: dict[str, tuple[Any, ...]] = {
        "drain.one_client": (jobs.noop,),
        "drain.many_clients": (jobs.noop_of_account,),
        "drain.results": (jobs.return_number,),
        "drain.two_processes": (jobs.noop, "--processes", "2"),
        "drain.two_processes_results": (jobs.return_number, "--processes", "2"),
    }
    for name, way in ways.items():
        drain(env, *way).record(readings, name)
    readings.ratio("drain.many_clients_vs_one", "drain.many_clients", "drain.one_client")
    readings.ratio("drain.results_vs_none", "drain.results", "drain.one_client")
    readings.ratio("drain.two_processes_vs_one", "drain.two_processes", "drain.one_client")
    readings.ratio("drain.vs_raw", "drain.one_client", "raw.batch")


def drain(
    env: Environment,
    task: Any,
    *options: str,
    jobs: int = 0,
    clients: int = CLIENTS,
    prepare: Callable[[], None] | None = None,
    settings: str = "",
) -> Cost:
    """The cost of so many jobs, of so many clients if the task has clients. A job counts when it is acknowledged.

    `prepare` is called before the jobs are enqueued. `settings`: a module for the worker.
    """
    from django_rtq.core.broker.brokers import get_broker

    jobs = jobs or (100_000 if env.is_quick else 150_000)
    env.clear()
    if prepare:
        prepare()
    for start in range(0, jobs, 5000):
        task.delay_many([((number % clients, number), {}) for number in range(start, start + 5000)])
    key = get_broker().keys.of("default").jobs
    return run_backlog(env, jobs, *options, left=lambda: int(env.redis.hlen(key)), settings=settings)
