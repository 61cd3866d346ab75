"""What it costs to start: Python with Django alone and with the package, and a worker until its first job."""

from __future__ import annotations

import json
import time
from statistics import median

from benchmarks.environment import Environment
from benchmarks.figures import Readings
from benchmarks.processes import cpu_seconds, family_of, memory_mb

TIMES = 10
DJANGO = """
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"] + APPS,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
"""
REPORT = "import json, sys, time; json.dump([time.process_time(), len(sys.modules)], open(sys.argv[1], 'w'))"
PROGRAMS = {"django": "APPS = []" + DJANGO, "rtq": "APPS = ['django_rtq']" + DJANGO}


def measure(env: Environment, readings: Readings) -> None:
    """Measure once per run, the programs in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    modules = dict.fromkeys(PROGRAMS, 0)
    for turn in range(TIMES + 1):
        for name, program in PROGRAMS.items():
            spent, modules[name] = _run(env, program)
            if turn:  # the first one reads files that are not in memory yet
                seconds[name].append(spent)
    for name in PROGRAMS:
        readings.add(f"start.{name}_cpu", median(seconds[name]))
        readings.add(f"start.{name}_modules", modules[name])
    readings.ratio("start.rtq_vs_django", "start.rtq_cpu", "start.django_cpu")
    starts = [_start_worker(env) for _ in range(TIMES)]
    readings.add("start.worker_cpu", median(cpu for cpu, _ in starts))
    readings.add("start.worker_first_job", median(wall for _, wall in starts))
    for processes in (1, 2):
        readings.add(f"start.pss_{processes}", _memory(env, processes))


def _run(env: Environment, program: str) -> tuple[float, int]:
    path = env.server.directory / "start.json"
    with env.process("-c", f"{program}\n{REPORT}", str(path)) as child:
        env.finish(child)
    spent, modules = json.loads(path.read_text())
    return float(spent), int(modules)


def _start_worker(env: Environment) -> tuple[float, float]:
    """CPU of all its processes, and seconds, until its first job has started."""
    from benchmarks.jobs import record_start

    env.clear()
    record_start.delay(1)
    began = time.monotonic_ns()
    with env.worker() as worker:
        env.wait_until(lambda: env.counters[1], "the job started", worker)
        return cpu_seconds(family_of(worker.pid)), (env.counters[1] - began) / 1e9


def _memory(env: Environment, processes: int) -> float:
    """MB of a worker whose processes have all run jobs, shared pages counted once."""
    from benchmarks.jobs import nap

    env.clear()
    jobs = 100 * processes
    nap.delay_many([((number, 1), {}) for number in range(jobs)])
    with env.worker("--processes", str(processes)) as worker:
        env.wait_until(lambda: not env.redis.exists("{rtq:default}:jobs"), "the jobs are done", worker)
        return memory_mb(family_of(worker.pid), "Pss")
