"""Idle: what a worker costs that has nothing to do. Supervisor with scheduler, and one child."""

from __future__ import annotations

import subprocess
import time
from collections import Counter

from benchmarks.figures import Readings
from benchmarks.processes import children_of, cpu_seconds, memory_mb
from benchmarks.proxy import CountingProxy
from benchmarks.stage import MeasurementFailed, Stage

SETTLE_SECONDS = 6.0  # one period of the heartbeat: what is done once is done by then
JOBS_BEFORE = 1000  # a child that has never run anything would be smaller than any real one


def measure(stage: Stage, readings: Readings) -> None:
    """One stretch of time, once in a run."""
    from benchmarks.jobs import noop

    seconds = 30 if stage.is_quick else 60  # a whole period of the scheduler at least
    stage.clear()
    noop.delay_many([((7, 42), {})] * JOBS_BEFORE)
    with CountingProxy(stage.server.port) as proxy, stage.worker(url=proxy.url) as worker:
        stage.wait_until(lambda: _is_done(stage), "the first jobs are done", worker)
        time.sleep(SETTLE_SECONDS)
        processes = _family(worker)
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


def _is_done(stage: Stage) -> bool:
    from django_rtq.broker.broker import get_broker

    return not stage.redis.exists(get_broker().keys.of("default").jobs)


def _by_name(commands: Counter[bytes]) -> str:
    from django_rtq.broker.scripts import SCRIPTS

    names = {script.sha: script.name for script in SCRIPTS.values()}
    return ", ".join(f"{names.get(name) or name.decode()} {n}" for name, n in commands.most_common() if n)


def _family(worker: subprocess.Popen[bytes]) -> list[int]:
    """The supervisor and its one child."""
    children = children_of(worker.pid)
    if len(children) != 1:
        raise MeasurementFailed(f"The worker has {len(children)} children, not one.")
    return [worker.pid, *children]
