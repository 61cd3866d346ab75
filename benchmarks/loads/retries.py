"""Jobs that fail once and are retried at once."""

from __future__ import annotations

from benchmarks.backlog import run_backlog
from benchmarks.counters import marks
from benchmarks.environment import Environment
from benchmarks.figures import Readings


def measure(env: Environment, readings: Readings) -> None:
    """One round. Both runs of a job are measured: after the first one it counts as half."""
    from benchmarks.jobs import fail_once

    jobs = 2000 if env.is_quick else 5000

    def left() -> int:
        seen = marks()[:jobs]
        return seen.count(b"\0") + seen.count(b"\2") // 2

    env.clear()
    fail_once.delay_many([((number,), {}) for number in range(jobs)])
    run_backlog(env, jobs, left=left).record(readings, "retries.once")
