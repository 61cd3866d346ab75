"""Runs a backlog of jobs with a real worker, and measures its rate and what each job costs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from benchmarks.counters import marked
from benchmarks.environment import Environment
from benchmarks.processes import family_of
from benchmarks.usage import Cost, cost_since, usage_at_start

FROM, TO = 0.88, 0.05  # share of jobs left when measuring begins and ends
SAMPLE_SECONDS = 0.005


def run_backlog(
    env: Environment,
    jobs: int,
    *options: str,
    left: Callable[[], int] | None = None,
    queue: str = "default",
    settings: str = "",
) -> Cost:
    """Start a worker for jobs that wait already. Returns when all have succeeded. Raises MeasurementFailed.

    Each job marks the byte of its number as its last step, unless `left` says how many are left.
    """
    left = left or (lambda: jobs - marked(jobs))
    with env.worker(*options, settings=settings) as worker:
        _wait_until_left(env, left, FROM * jobs, worker)
        processes = family_of(worker.pid)
        start = usage_at_start(env.redis, processes, jobs - left())
        _wait_until_left(env, left, TO * jobs, worker)
        cost = cost_since(start, env.redis, processes, jobs - left())
        # Not each load ends with --burst, which leaves retries. The queue's own counters must agree.
        env.wait_until(lambda: succeeded_in(queue) == jobs, f"{jobs} jobs have succeeded", worker, every=0.05)
    return cost


def succeeded_in(queue: str) -> int:
    """The number in the queue's own counters."""
    from django_rtq.console.reading.readers import readers_of

    rows = readers_of().overview.read().queues
    return sum(row.series.total("succeeded") for row in rows if row.details.name == queue)


def _wait_until_left(env: Environment, left: Callable[[], int], jobs: float, worker: subprocess.Popen[bytes]) -> None:
    env.wait_until(lambda: left() <= jobs, f"{jobs:,.0f} jobs are left", worker, every=SAMPLE_SECONDS)
