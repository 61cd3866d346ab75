"""Throughput of a real worker with no-op jobs, without its start and end."""

from __future__ import annotations

import subprocess
import time
from typing import Any, NamedTuple

from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings
from benchmarks.processes import children_of, cpu_seconds

CLIENTS = 1000
SAMPLE_SECONDS = 0.02  # between two samples, which cost 0.1 % of the server's time
FROM, TO = 0.90, 0.04  # share of jobs left when measuring begins and ends


class Sample(NamedTuple):
    """One sample of a worker that drains."""

    seconds: float
    left: int  # jobs
    cpu_seconds: float  # of Redis, supervisor and children so far


def measure(env: Environment, readings: Readings) -> None:
    """One round: each variant once."""
    from benchmarks import jobs

    ways: dict[str, tuple[Any, ...]] = {
        "drain.one_client": (jobs.noop,),
        "drain.many_clients": (jobs.noop_of_account,),
        "drain.results": (jobs.return_number,),
        "drain.two_processes": (jobs.noop, "--processes", "2"),
    }
    for name, way in ways.items():
        rate, cpu = drain(env, *way)
        readings.add(name, rate)
        readings.add(f"{name}_cpu", cpu)
    readings.ratio("drain.many_clients_vs_one", "drain.many_clients", "drain.one_client")
    readings.ratio("drain.results_vs_none", "drain.results", "drain.one_client")
    readings.ratio("drain.two_processes_vs_one", "drain.two_processes", "drain.one_client")
    readings.ratio("drain.vs_raw", "drain.one_client", "raw.batch")


def drain(env: Environment, task: Any, *options: str) -> tuple[float, float]:
    """Jobs per second, and µs of CPU per job. A job counts when it is acknowledged."""
    jobs = 100_000 if env.is_quick else 150_000
    env.clear()
    for start in range(0, jobs, 5000):
        task.delay_many([((number % CLIENTS, number), {}) for number in range(start, start + 5000)])
    with env.worker("--burst", *options) as worker:
        samples = _samples(env, jobs, worker)
        env.finish(worker)
    succeeded = _succeeded()
    if succeeded != jobs:
        raise MeasurementFailed(f"Of {jobs} jobs {succeeded} succeeded.")
    first, *_, last = [sample for sample in samples if TO * jobs <= sample.left <= FROM * jobs]
    done = first.left - last.left
    return done / (last.seconds - first.seconds), (last.cpu_seconds - first.cpu_seconds) / done * 1e6


def _samples(env: Environment, jobs: int, worker: subprocess.Popen[bytes], *, seconds: float = 60) -> list[Sample]:
    """Sample from the first finished job until none is left."""
    from django_rtq.broker.broker import get_broker

    key = get_broker().keys.of("default").jobs
    env.wait_until(lambda: env.redis.hlen(key) < jobs, "the first job is done", worker)
    processes = [env.server.pid, worker.pid, *children_of(worker.pid)]
    deadline = time.perf_counter() + seconds
    samples: list[Sample] = []
    while not samples or samples[-1].left:
        time.sleep(SAMPLE_SECONDS)
        left = int(env.redis.hlen(key))
        samples.append(Sample(time.perf_counter(), left, cpu_seconds(processes)))
        if samples[-1].seconds > deadline or worker.poll():
            raise MeasurementFailed(f"{left} of {jobs} jobs are left. Worker: {worker.poll()}\n{env.log()}")
    return samples


def _succeeded() -> int:
    """The number in the queue's own counters."""
    from django_rtq.inspector.inspector import get_inspector

    return get_inspector().overview.time_series("default").total("succeeded")
