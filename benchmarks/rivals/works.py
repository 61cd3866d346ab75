"""The works: each is done once by each contender in each round, and returns a Reading."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.backlog import FROM, SAMPLE_SECONDS, TO
from benchmarks.counters import marked, marks
from benchmarks.environment import ROOT, Environment, MeasurementFailed
from benchmarks.figures import percentile
from benchmarks.loads.database import VARIABLE, create_table
from benchmarks.processes import family_of
from benchmarks.rivals.contenders import SLOTS, Contender
from benchmarks.usage import cost_since, usage_at_start
from testproject.postgres_server import PostgresUnavailable, PrivatePostgres

PRODUCER_SECONDS = 300
GROUP, GROUP_SECONDS = 10_000, 300  # jobs before a callback, and how long it may take
KILLED_GROUP, KILLED_SECONDS, AGAIN_SECONDS = 2_000, 100, 3


class Reading(NamedTuple):
    """What was measured once. Costs are per job; None if they were not measured."""

    value: float
    python_cpu: float | None = None  # µs, of the worker; of the caller for enqueue
    redis_cpu: float | None = None  # µs
    commands: float | None = None


class Entrant(NamedTuple):
    """A contender with its environment."""

    name: str
    contender: Contender
    python: Path


class Work(NamedTuple):
    """One line of the report."""

    unit: str
    description: str
    measure: Callable[[Environment, Entrant], Reading]


def _backlog(
    env: Environment, entrant: Entrant, task: str, jobs: int, *, processes: int = 1, slots: int = 1
) -> Reading:
    """Jobs wait, then a worker starts. Measured is the part from 88 % to 5 % left. A failed run is half a job."""

    def left() -> float:
        seen = marks()[:jobs]
        return seen.count(b"\0") + seen.count(b"\2") / 2

    _ask(env, entrant, "fill", jobs, task)
    with _workers(env, entrant, processes, slots) as workers:
        first = workers[0]
        env.wait_until(lambda: left() <= FROM * jobs, "the first jobs are done", first, every=SAMPLE_SECONDS)
        pids = [pid for worker in workers for pid in family_of(worker.pid)]
        start = usage_at_start(env.redis, pids, round(jobs - left()))
        env.wait_until(lambda: left() <= TO * jobs, "most jobs are done", first, every=SAMPLE_SECONDS, seconds=120)
        cost = cost_since(start, env.redis, pids, round(jobs - left()))
        env.wait_until(lambda: not left(), "all jobs are done", first, every=SAMPLE_SECONDS)
    return Reading(cost.rate, cost.worker_cpu, cost.redis_cpu, cost.commands)


def _slots(entrant: Entrant) -> int:
    return SLOTS.get(entrant.name, 1)


def _drain(env: Environment, entrant: Entrant, *, processes: int = 1) -> Reading:
    jobs = entrant.contender.jobs * processes // (4 if env.is_quick else 1)
    return _backlog(env, entrant, "noop", jobs, processes=processes, slots=_slots(entrant))


def _nap(env: Environment, entrant: Entrant, *, slots: int = 1) -> Reading:
    return _backlog(env, entrant, "nap", (150 if env.is_quick else 400) * (4 if slots > 1 else 1), slots=slots)


def _retries(env: Environment, entrant: Entrant) -> Reading:
    jobs = min(2000, entrant.contender.jobs) // (4 if env.is_quick else 1)
    return _backlog(env, entrant, "fail_once", jobs, slots=_slots(entrant))


def _database(env: Environment, entrant: Entrant) -> Reading:
    """With a PostgreSQL server of its own, and connections that are kept."""
    try:
        with PrivatePostgres() as server, _database_of(env, server):
            return _backlog(env, entrant, "read_and_write", 600 if env.is_quick else 2000, processes=2)
    except PostgresUnavailable as problem:
        raise MeasurementFailed(f"PostgreSQL is not available: {problem}") from None


@contextmanager
def _database_of(env: Environment, server: PrivatePostgres) -> Iterator[None]:
    """Make the table, and set what the settings of all contenders read."""
    os.environ[VARIABLE] = json.dumps({**server.settings, "CONN_MAX_AGE": None})
    try:
        create_table(env)
        yield
    finally:
        del os.environ[VARIABLE]


def _enqueue(env: Environment, entrant: Entrant) -> Reading:
    """One process, one call after the other, no worker. The cost of Redis includes 20 calls before."""
    calls = 1000 if env.is_quick else 4000
    start = usage_at_start(env.redis, (), 0)
    spent = _ask(env, entrant, "enqueue", calls)
    cost = cost_since(start, env.redis, (), calls)
    return Reading(calls / spent["seconds"], spent["cpu"] / calls * 1e6, cost.redis_cpu, cost.commands)


def _latency(env: Environment, entrant: Entrant) -> Reading:
    with _workers(env, entrant, 1, _slots(entrant)):
        return Reading(percentile(_ask(env, entrant, "latency", 100 if env.is_quick else 200), 50))


def _get(env: Environment, entrant: Entrant) -> Reading:
    with _workers(env, entrant, 1, _slots(entrant)):
        return Reading(percentile(_ask(env, entrant, "get", 100 if env.is_quick else 200), 50))


def _group(env: Environment, entrant: Entrant) -> Reading:
    """Two workers are idle. Seconds until the callback has started."""
    with _workers(env, entrant, 2, _slots(entrant)) as workers:
        began = _ask(env, entrant, "group", GROUP // (10 if env.is_quick else 1), "noop")
        callback = env.counters
        env.wait_until(lambda: callback[0], "the callback has started", workers[0], seconds=GROUP_SECONDS)
    return Reading((callback[0] - began) / 1e9)


def _group_memory(env: Environment, entrant: Entrant) -> Reading:
    """No worker is there. How many MB Redis needs for it."""
    before = _used_mb(env)
    _ask(env, entrant, "group", GROUP // (10 if env.is_quick else 1), "noop")
    return Reading(_used_mb(env) - before)


def _used_mb(env: Environment) -> float:
    return float(env.redis.info("memory")["used_memory"]) / 1e6


def _group_killed(env: Environment, entrant: Entrant) -> Reading:
    """One of two workers is killed with all its processes when half of the jobs are done. Calls of the callback."""
    count = KILLED_GROUP // (10 if env.is_quick else 1)
    with _workers(env, entrant, 1, _slots(entrant)) as killed, _workers(env, entrant, 1, _slots(entrant)) as workers:
        _ask(env, entrant, "group", count, "nap")
        env.wait_until(lambda: marked(count) >= count / 2, "half of a group is done", workers[0])
        for pid in [pid for worker in killed for pid in family_of(worker.pid)]:
            os.kill(pid, signal.SIGKILL)
        with suppress(MeasurementFailed):  # it never comes
            env.wait_until(lambda: env.counters[1], "the callback", workers[0], seconds=KILLED_SECONDS, every=0.02)
            with suppress(MeasurementFailed):
                env.wait_until(lambda: env.counters[1] > 1, "again", workers[0], seconds=AGAIN_SECONDS, every=0.02)
    return Reading(env.counters[1])


WORKS = {
    "drain_1": Work("jobs/s", "no-op jobs, one process", _drain),
    "drain_2": Work("jobs/s", "no-op jobs, two processes", lambda env, who: _drain(env, who, processes=2)),
    "nap": Work("jobs/s", "jobs of 6 ms, one at a time (at most 167)", _nap),
    "nap_16": Work(
        "jobs/s", "jobs of 6 ms, 16 at once in one process (at most 2,667)", lambda env, who: _nap(env, who, slots=16)
    ),
    "database": Work("jobs/s", "jobs of one SELECT and one UPDATE in PostgreSQL, two processes", _database),
    "enqueue": Work("jobs/s", "enqueued one by one by one process", _enqueue),
    "latency": Work("ms", "from the call to the first line of the job, idle worker, median", _latency),
    "get": Work("ms", "from the call to its result, idle worker, median", _get),
    "group": Work("s", "10,000 no-op jobs until a callback has started, two processes", _group),
    "group_memory": Work("MB", "memory of Redis for the same, before a worker starts", _group_memory),
    "group_killed": Work(
        "calls",
        "of the callback of 2,000 jobs of 6 ms within 100 s, one of two workers killed in the middle: should be 1",
        _group_killed,
    ),
    "retries": Work("jobs/s", "jobs that fail once and are retried at once, one process", _retries),
}


def _variables(env: Environment, entrant: Entrant) -> dict[str, str]:
    return {
        **entrant.contender.variables,
        "DJANGO_SETTINGS_MODULE": entrant.contender.settings,
        "PYTHONPATH": str(ROOT),
        "RTQ_BENCH_REDIS": env.server.url,
    }


def _ask(env: Environment, entrant: Entrant, action: str, count: int, *task: str) -> Any:
    """Run the producer, and return what it prints. Raises MeasurementFailed."""
    command = [entrant.python, "-m", "benchmarks.rivals.producer", entrant.name, action, str(count), *task]
    variables = {**os.environ, **_variables(env, entrant)}
    try:
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=PRODUCER_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise MeasurementFailed(f"The producer took more than {PRODUCER_SECONDS} s.\n{env.log()}") from None
    if done.returncode:
        raise MeasurementFailed(f"The producer ended with code {done.returncode}.\n{done.stderr[-2000:]}\n{env.log()}")
    return json.loads(done.stdout)


@contextmanager
def _workers(env: Environment, entrant: Entrant, processes: int, slots: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Workers, stopped at the end with all that they have started."""
    variables = _variables(env, entrant)
    with ExitStack() as stack:
        workers = []
        for arguments in entrant.contender.worker(processes, slots):
            worker = stack.enter_context(env.process(*arguments, python=entrant.python, variables=variables))
            workers.append(worker)
        try:
            yield workers
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                with suppress(subprocess.TimeoutExpired):
                    worker.wait(5)
                with suppress(ProcessLookupError):  # each has a process group of its own
                    os.killpg(worker.pid, signal.SIGKILL)
