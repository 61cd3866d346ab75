"""Draining: how fast a real worker gets through no-op jobs, once it is in full swing."""

from __future__ import annotations

import subprocess
import time
from typing import Any, NamedTuple

from benchmarks.figures import Readings
from benchmarks.processes import children_of, cpu_seconds
from benchmarks.stage import MeasurementFailed, Stage

CLIENTS = 1000
LOOK_SECONDS = 0.02  # between two looks at what is left: they cost the server 0.1 % of its time
FROM, TO = 0.90, 0.04  # of all jobs, what is left when measuring begins and ends: no start, no last crumbs


class Sample(NamedTuple):
    """One look at a worker that drains."""

    seconds: float
    left: int  # jobs
    cpu_seconds: float  # of Redis, supervisor and children so far


def measure(stage: Stage, readings: Readings) -> None:
    """One round: each way once."""
    from benchmarks import jobs

    ways: dict[str, tuple[Any, ...]] = {
        "drain.one_client": (jobs.noop,),
        "drain.many_clients": (jobs.noop_of_account,),
        "drain.results": (jobs.answer,),
        "drain.two_processes": (jobs.noop, "--processes", "2"),
    }
    for name, way in ways.items():
        rate, cpu = drain(stage, *way)
        readings.add(name, rate)
        readings.add(f"{name}_cpu", cpu)
    readings.ratio("drain.many_clients_vs_one", "drain.many_clients", "drain.one_client")
    readings.ratio("drain.results_vs_none", "drain.results", "drain.one_client")
    readings.ratio("drain.two_processes_vs_one", "drain.two_processes", "drain.one_client")
    readings.ratio("drain.vs_raw", "drain.one_client", "raw.batch")


def drain(stage: Stage, task: Any, *options: str) -> tuple[float, float]:
    """Jobs per second, and µs of CPU a job. A job that is not acknowledged does not count as done."""
    jobs = 100_000 if stage.is_quick else 150_000
    stage.clear()
    for start in range(0, jobs, 5000):
        task.delay_many([((number % CLIENTS, number), {}) for number in range(start, start + 5000)])
    with stage.worker("--burst", *options) as worker:
        samples = _samples(stage, jobs, worker)
        stage.finish(worker)
    succeeded = _succeeded()
    if succeeded != jobs:
        raise MeasurementFailed(f"Of {jobs} jobs {succeeded} succeeded.")
    first, *_, last = [sample for sample in samples if TO * jobs <= sample.left <= FROM * jobs]
    done = first.left - last.left
    return done / (last.seconds - first.seconds), (last.cpu_seconds - first.cpu_seconds) / done * 1e6


def _samples(stage: Stage, jobs: int, worker: subprocess.Popen[bytes], *, seconds: float = 60) -> list[Sample]:
    """Looks at it, from the first job done until none is left."""
    from django_rtq.broker.broker import get_broker

    key = get_broker().keys.of("default").jobs
    stage.wait_until(lambda: stage.redis.hlen(key) < jobs, "the first job is done", worker)
    processes = [stage.server.pid, worker.pid, *children_of(worker.pid)]
    deadline = time.perf_counter() + seconds
    samples: list[Sample] = []
    while not samples or samples[-1].left:
        time.sleep(LOOK_SECONDS)
        left = int(stage.redis.hlen(key))
        samples.append(Sample(time.perf_counter(), left, cpu_seconds(processes)))
        if samples[-1].seconds > deadline or worker.poll():
            raise MeasurementFailed(f"{left} of {jobs} jobs are left. Worker: {worker.poll()}\n{stage.log()}")
    return samples


def _succeeded() -> int:
    """As the queue's own counters have it."""
    from django_rtq.inspector.inspector import get_inspector

    return get_inspector().overview.time_series("default").total("succeeded")
