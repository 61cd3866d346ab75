"""The cost of an idle worker: a supervisor with scheduler, and one worker process."""

from __future__ import annotations

import subprocess
import time
from collections import Counter

from benchmarks.counting_proxy import CountingProxy
from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings
from benchmarks.processes import children_of, cpu_seconds, memory_mb

SETTLE_SECONDS = 6.0  # more than one heartbeat: start-up is over by then
JOBS_BEFORE = 1000  # a process that has never run a job is smaller than real ones


def measure(env: Environment, readings: Readings) -> None:
    """Measure once per run."""
    from benchmarks.jobs import noop

    seconds = 30 if env.is_quick else 60  # at least one whole period of the scheduler
    env.clear()
    noop.delay_many([((7, 42), {})] * JOBS_BEFORE)
    with CountingProxy(env.server.port) as proxy, env.worker(url=proxy.url) as worker:
        env.wait_until(lambda: _is_done(env), "the first jobs are done", worker)
        time.sleep(SETTLE_SECONDS)
        processes = _processes_of(worker)
        trips, commands = proxy.counted()
        cpu, started = cpu_seconds(processes), time.monotonic()
        time.sleep(seconds)
        spent = cpu_seconds(processes) - cpu
        trips_after, commands_after = proxy.counted()
        minutes = (time.monotonic() - started) / 60
        pss, rss = memory_mb(processes, "Pss"), memory_mb(processes, "Rss")
    commands_after.subtract(commands)
    readings.add("idle.round_trips", (trips_after - trips) / minutes)
    readings.add("idle.commands", commands_after.total() / minutes)
    readings.add("idle.cpu", spent / minutes)
    readings.add("idle.pss", pss)
    readings.add("idle.rss", rss)
    readings.remark(f"idle: commands in {seconds} s: {_by_name(commands_after)}")


def _is_done(env: Environment) -> bool:
    from django_rtq.core.broker.brokers import get_broker

    return not env.redis.exists(get_broker().keys.of("default").jobs)


def _by_name(commands: Counter[bytes]) -> str:
    from django_rtq.core.broker.scripts import SCRIPTS

    names = {script.sha: script.name for script in SCRIPTS.values()}
    return ", ".join(f"{names.get(name) or name.decode()} {n}" for name, n in commands.most_common() if n)


def _processes_of(worker: subprocess.Popen[bytes]) -> list[int]:
    """The pids of the supervisor and its worker process."""
    children = children_of(worker.pid)
    if len(children) != 1:
        raise MeasurementFailed(f"The worker has {len(children)} processes, not one.")
    return [worker.pid, *children]
