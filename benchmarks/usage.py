"""What jobs cost: CPU time of worker and Redis, and commands of Redis, between two moments."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import redis

from benchmarks.environment import MeasurementFailed
from benchmarks.figures import Readings
from benchmarks.processes import cpu_seconds

OWN_COMMANDS = 3  # of the measurement itself between two moments


class Usage(NamedTuple):
    """One moment. CPU times are in seconds since the start of the processes."""

    seconds: float
    done: int  # jobs
    worker_cpu: float
    redis_cpu: float
    commands: int  # of Redis, also inside scripts
    script_time: float  # of Redis in scripts


class Cost(NamedTuple):
    """What jobs have cost between two moments."""

    rate: float  # jobs per second
    worker_cpu: float  # µs per job, of the supervisor and its processes
    redis_cpu: float  # µs per job
    commands: float  # of Redis per job, also inside scripts
    script_time: float = 0.0  # µs per job: the part of redis_cpu that is neither network nor parsing

    def record(self, readings: Readings, name: str, *, limit: float = 0) -> None:
        """Add the round of a figure, and its costs. With a limit in jobs per second also its share of that."""
        readings.add(name, self.rate)
        readings.add(f"{name}_worker_cpu", self.worker_cpu)
        readings.add(f"{name}_redis_cpu", self.redis_cpu)
        readings.add(f"{name}_script_time", self.script_time)
        readings.add(f"{name}_commands", self.commands)
        if limit:
            readings.add(f"{name}_share", self.rate / limit)


def mean_of(costs: Sequence[Cost]) -> Cost:
    """The mean of slices with the same number of jobs."""
    seconds, *others = zip(*((1 / cost.rate, *cost[1:]) for cost in costs), strict=True)
    return Cost(len(costs) / sum(seconds), *(fmean(values) for values in others))


def usage_at_start(client: redis.Redis, worker: Iterable[int], done: int) -> Usage:
    """The first moment. The order of queries keeps their own cost out."""
    commands, script_time = _commands(client)
    return Usage(time.perf_counter(), done, cpu_seconds(worker), redis_cpu(client), commands, script_time)


def cost_since(start: Usage, client: redis.Redis, worker: Iterable[int], done: int) -> Cost:
    """What the jobs since then have cost. Raises MeasurementFailed if there are none."""
    now = Usage(time.perf_counter(), done, cpu_seconds(worker), redis_cpu(client), *_commands(client))
    jobs = now.done - start.done
    if not jobs:
        raise MeasurementFailed("All jobs were done between two samples: too few for this machine.")
    return Cost(
        jobs / (now.seconds - start.seconds),
        (now.worker_cpu - start.worker_cpu) / jobs * 1e6,
        (now.redis_cpu - start.redis_cpu) / jobs * 1e6,
        (now.commands - start.commands - OWN_COMMANDS) / jobs,
        (now.script_time - start.script_time) / jobs * 1e6,
    )


def redis_cpu(client: redis.Redis) -> float:
    """Seconds since its start."""
    info = client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def commands_of(client: redis.Redis) -> int:
    """Since its start, also inside scripts. Each call counts its own."""
    return _commands(client)[0]


def _commands(client: redis.Redis) -> tuple[int, float]:
    """The number of commands, and the seconds in scripts."""
    stats = client.info("commandstats")
    scripts = stats.get("cmdstat_evalsha", {"usec": 0})
    return sum(int(command["calls"]) for command in stats.values()), int(scripts["usec"]) / 1e6
