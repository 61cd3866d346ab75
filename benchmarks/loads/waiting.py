"""Jobs that wait for something, such as a service: in processes, threads and coroutines."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.backlog import run_backlog
from benchmarks.environment import Environment
from benchmarks.figures import Readings

MOST_JOBS = 60_000


class Load(NamedTuple):
    """How long each job sleeps, and how many run at once."""

    ms: int
    processes: int = 1
    slots: int = 1  # of each process
    is_async: bool = False

    @property
    def limit(self) -> float:
        """Jobs per second, if they cost nothing."""
        return self.processes * self.slots / self.ms * 1000


ORDINARY = {
    **{f"ordinary.{ms}ms": Load(ms) for ms in (1, 6, 20)},
    **{f"ordinary.{ms}ms_{n}_processes": Load(ms, processes=n) for ms in (1, 6, 20) for n in (4, 16)},
    **{f"ordinary.{ms}ms_{n}_threads": Load(ms, slots=n) for ms in (1, 6, 20) for n in (4, 16)},
    "ordinary.5ms_4x4": Load(5, processes=4, slots=4),
}
THREADS = {
    "threads.2ms_16": Load(2, slots=16),
    "threads.2ms_64": Load(2, slots=64),
    "threads.50ms_16": Load(50, slots=16),
}
COROUTINES = {
    "coroutines.50ms_500": Load(50, slots=500, is_async=True),
    "coroutines.2ms_100": Load(2, slots=100, is_async=True),
}


def measure_ordinary(env: Environment, readings: Readings) -> None:
    """One round: each load once."""
    _measure(env, readings, ORDINARY)


def measure_threads(env: Environment, readings: Readings) -> None:
    """One round: each load once."""
    _measure(env, readings, THREADS)


def measure_coroutines(env: Environment, readings: Readings) -> None:
    """One round: each load once."""
    _measure(env, readings, COROUTINES)


def _measure(env: Environment, readings: Readings, loads: dict[str, Load]) -> None:
    from benchmarks.jobs import nap, nap_async

    seconds = 1.2 if env.is_quick else 2.5  # of jobs, at the limit
    for name, load in loads.items():
        task = nap_async if load.is_async else nap
        jobs = min(MOST_JOBS, max(100, int(load.limit * seconds)))
        env.clear()
        task.delay_many([((number, load.ms), {}) for number in range(jobs)])
        options = ("--processes", str(load.processes), "--concurrency", str(load.slots))
        run_backlog(env, jobs, *options).record(readings, name, limit=load.limit)
