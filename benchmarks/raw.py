"""The raw limit: what one process could do that only pops, decodes and calls, and would lose jobs in a crash."""

from __future__ import annotations

import json
import time

from benchmarks.figures import Readings
from benchmarks.stage import Stage

KEY = "raw"
RECORD = '{"task":"benchmarks.jobs.noop","args":[7,42]}'
BATCH = 64
POP = """
local records = redis.call("LRANGE", KEYS[1], 0, ARGV[1] - 1)
redis.call("LTRIM", KEYS[1], ARGV[1], -1)
return records
"""


def measure(stage: Stage, readings: Readings) -> None:
    """One round."""
    jobs = 50_000 if stage.is_quick else 100_000
    readings.add("raw.batch", _rate(stage, jobs, by_batches=True))
    readings.add("raw.single", _rate(stage, jobs // 5, by_batches=False))


def _rate(stage: Stage, jobs: int, *, by_batches: bool) -> float:
    stage.clear()
    for _ in range(jobs // 1000):
        stage.redis.rpush(KEY, *[RECORD] * 1000)
    started = time.perf_counter()
    done = _by_batches(stage) if by_batches else _one_by_one(stage)
    assert done == jobs
    return done / (time.perf_counter() - started)


def _by_batches(stage: Stage) -> int:
    tasks, done = {"benchmarks.jobs.noop": _noop}, 0
    sha = stage.redis.script_load(POP)
    while records := stage.redis.evalsha(sha, 1, KEY, BATCH):
        for record in records:
            call = json.loads(record)
            tasks[call["task"]](*call["args"])
        done += len(records)
    return done


def _one_by_one(stage: Stage) -> int:
    tasks, done = {"benchmarks.jobs.noop": _noop}, 0
    while isinstance(record := stage.redis.lpop(KEY), bytes):
        call = json.loads(record)
        tasks[call["task"]](*call["args"])
        done += 1
    return done


def _noop(account: int, number: int) -> None:
    pass
