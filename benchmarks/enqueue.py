"""Enqueueing: delay() compared with a bare EVALSHA of the same script and payload, and delay_many() with delay()."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from benchmarks.environment import Environment
from benchmarks.figures import Readings

SINGLES = 300  # calls in a row: they take far less than the second after which an id counts as old
AT_ONCE = 2000  # calls of threads or coroutines
THREADS, COROUTINES = 8, 100  # that enqueue at once
CHUNKS = (300, 1000, 3000)
MANY = 3000  # jobs in a row


def measure(env: Environment, readings: Readings) -> None:
    """One round: all variants in turn, in slices of about 20 ms."""
    env.clear()
    loop = asyncio.new_event_loop()
    ways: dict[str, Callable[[], float]] = {
        "enqueue.delay": _delay,
        "enqueue.evalsha": lambda: _evalsha(env),
        "enqueue.using": _using,
        "enqueue.threads": _threads,
        "enqueue.coroutines": lambda: _coroutines(loop),
        **{f"enqueue.many_{size}": lambda size=size: _delay_many(size) for size in CHUNKS},  # type: ignore[misc]
    }
    seconds = dict.fromkeys(ways, 0.0)
    turns = 5 if env.is_quick else 20
    for turn in range(turns + 1):
        for name, way in ways.items():
            spent = way()
            if turn:  # the first turn loads the script and connects
                seconds[name] += spent
    loop.close()
    for name, spent in seconds.items():
        jobs = MANY if "many" in name else AT_ONCE if name in ("enqueue.threads", "enqueue.coroutines") else SINGLES
        readings.add(name, turns * jobs / spent)
    readings.ratio("enqueue.delay_vs_evalsha", "enqueue.delay", "enqueue.evalsha")
    readings.ratio("enqueue.using_cost", "enqueue.delay", "enqueue.using")  # these are rates: the ratio is inverse
    readings.ratio("enqueue.coroutines_vs_threads", "enqueue.coroutines", "enqueue.threads")
    slowest = min((f"enqueue.many_{size}" for size in CHUNKS), key=lambda name: readings.rounds[name][-1])
    readings.ratio("enqueue.many_vs_delay", slowest, "enqueue.delay")


def _delay() -> float:
    from benchmarks.jobs import noop

    started = time.perf_counter()
    for number in range(SINGLES):
        noop.delay(7, number)
    return time.perf_counter() - started


def _threads() -> float:
    from benchmarks.jobs import noop

    def call() -> None:
        for number in range(AT_ONCE // THREADS):
            noop.delay(7, number)

    threads = [threading.Thread(target=call) for _ in range(THREADS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


def _coroutines(loop: asyncio.AbstractEventLoop) -> float:
    from benchmarks.jobs import noop

    async def call() -> None:
        for number in range(AT_ONCE // COROUTINES):
            await noop.adelay(7, number)

    async def calls() -> None:
        await asyncio.gather(*(call() for _ in range(COROUTINES)))

    started = time.perf_counter()
    loop.run_until_complete(calls())
    return time.perf_counter() - started


def _using() -> float:
    from benchmarks.jobs import noop

    started = time.perf_counter()
    for number in range(SINGLES):
        noop.using(client="7").delay(7, number)
    return time.perf_counter() - started


def _evalsha(env: Environment) -> float:
    """What delay() sends, prepared before the clock starts, through redis-py's own client."""
    from benchmarks.jobs import noop
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.scripts import SCRIPTS
    from django_rtq.core.tasks.task import new_job

    script = SCRIPTS["enqueue"]
    _, sha, count, *keys = script.head(get_broker().keys.of("default"))
    payloads = [new_job(noop, (7, number), {}) for number in range(SINGLES)]
    evalsha = env.redis.evalsha
    started = time.perf_counter()
    for payload in payloads:
        evalsha(sha, count, *keys, *payload)  # type: ignore[arg-type]
    return time.perf_counter() - started


def _delay_many(size: int) -> float:
    from benchmarks.jobs import noop

    started = time.perf_counter()
    for first in range(0, MANY, size):
        noop.delay_many([((7, number), {}) for number in range(first, first + size)])
    return time.perf_counter() - started
