"""The upper limit: one process that only pops, decodes and calls. It would lose jobs in a crash."""

from __future__ import annotations

import json
import time

from benchmarks.environment import Environment
from benchmarks.figures import Readings

KEY = "raw"
RECORD = '{"task":"benchmarks.jobs.noop","args":[7,42]}'
BATCH = 64
POP = """
local records = redis.call("LRANGE", KEYS[1], 0, ARGV[1] - 1)
redis.call("LTRIM", KEYS[1], ARGV[1], -1)
return records
"""


def measure(env: Environment, readings: Readings) -> None:
    """Measure one round."""
    jobs = 50_000 if env.is_quick else 100_000
    readings.add("raw.batch", _rate(env, jobs, by_batches=True))
    readings.add("raw.single", _rate(env, jobs // 5, by_batches=False))


def _rate(env: Environment, jobs: int, *, by_batches: bool) -> float:
    env.clear()
    for _ in range(jobs // 1000):
        env.redis.rpush(KEY, *[RECORD] * 1000)
    started = time.perf_counter()
    done = _by_batches(env) if by_batches else _one_by_one(env)
    assert done == jobs
    return done / (time.perf_counter() - started)


def _by_batches(env: Environment) -> int:
    tasks, done = {"benchmarks.jobs.noop": _noop}, 0
    sha = env.redis.script_load(POP)
    while records := env.redis.evalsha(sha, 1, KEY, BATCH):
        for record in records:
            call = json.loads(record)
            tasks[call["task"]](*call["args"])
        done += len(records)
    return done


def _one_by_one(env: Environment) -> int:
    tasks, done = {"benchmarks.jobs.noop": _noop}, 0
    while isinstance(record := env.redis.lpop(KEY), bytes):
        call = json.loads(record)
        tasks[call["task"]](*call["args"])
        done += 1
    return done


def _noop(account: int, number: int) -> None:
    pass
