"""What shards cost: a job with several of them, an idle worker, its wake-up, and the others when one is down."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import redis

from benchmarks.counters import marked
from benchmarks.environment import Environment, MeasurementFailed
from benchmarks.figures import Readings, percentile
from benchmarks.latency import PAUSE_SECONDS, WARM_UP, sample
from benchmarks.processes import cpu_seconds, family_of, memory_mb
from benchmarks.usage import redis_cpu
from testproject.redis_server import PrivateRedis

ROUNDS = 3
JOBS = {"noop": 60_000, "2ms": 6_000}
ONE_BY_ONE = 1_500  # jobs that are enqueued so
FROM, TO = 0.1, 0.6  # shares of the jobs that are done when measuring begins and ends: no shard is empty by then
COSTS = ("enqueue_python", "enqueue_redis", "run_python", "run_redis")
COUNTS = ("enqueue_commands", "run_commands", "run_scripts")  # by Redis, also in scripts; and calls of scripts
IDLE = {1: (), 8: (), 16: ("--shards", "all")}
SETTLE_SECONDS, IDLE_SECONDS = 12.0, 24.0  # two heartbeats; four of them
SAMPLES = 100  # of a block
DOWN_SECONDS, AROUND_SECONDS = 16.0, 5.0  # more than a lease; before it, and after it


class Side(NamedTuple):
    """What is compared: these shards, with a worker."""

    urls: Sequence[str]
    options: Sequence[str]


def measure(env: Environment, readings: Readings) -> None:
    """Measure once per run."""
    with ExitStack() as stack:
        servers = [env.server, *(stack.enter_context(PrivateRedis()) for _ in range(3))]
        clients = [stack.enter_context(redis.Redis(port=server.port)) for server in servers]
        databases = [f"redis://127.0.0.1:{servers[0].port}/{number}" for number in range(16)]
        one, four = Side(databases[:1], ("--processes", "4")), Side([server.url for server in servers], ())
        _jobs(env, readings, "four", one, four, clients)
        sixteen = Side(databases, ("--shards", "all"))
        _jobs(env, readings, "sixteen", Side(databases[:1], ("--processes", "16")), sixteen, clients[:1])
        _wake_ups(env, readings, databases, clients)
        _idle(env, readings, servers[1:], clients[1:])
        _outages(env, readings, servers[:3], clients)


@contextmanager
def _sharded(env: Environment, urls: Sequence[str], clients: Sequence[redis.Redis]) -> Iterator[None]:
    """Empty servers, and settings for this process and its workers; one URL alone: without shards."""
    from django.test import override_settings

    from django_rtq.broker.brokers import close_brokers

    env.clear()
    for client in clients:
        client.flushall()
    where = {"SHARDS": dict(enumerate(urls))} if len(urls) > 1 else {"REDIS": urls[0]}
    os.environ["RTQ_BENCH_SHARDS"] = " ".join(urls) if len(urls) > 1 else ""
    with override_settings(RTQ={**where, "TASK_MODULES": ["jobs"]}):
        try:
            yield
        finally:
            close_brokers()
            os.environ["RTQ_BENCH_SHARDS"] = ""


def _client_of(shard: int, urls: Sequence[str], start: int = 0) -> str:
    """The name of a client whose jobs go to a shard."""
    from django_rtq.broker.sharded import shard_for

    numbers, names = tuple(range(len(urls))), (f"shop-{number}" for number in itertools.count(start))
    return next(name for name in names if shard_for(f"client {name}", numbers) == shard)


# -- what a job costs


def _jobs(
    env: Environment, readings: Readings, name: str, one: Side, many: Side, clients: Sequence[redis.Redis]
) -> None:
    """Rounds of both sides in turn, with no-op jobs, which are claimed in batches, and with jobs of 2 ms."""
    for load, jobs in JOBS.items():
        for _ in range(2 if env.is_quick else ROUNDS):
            for side, figure in ((one, f"shards.one_{name}_{load}"), (many, f"shards.{name}_{load}")):
                for what, cost in _job_costs(env, side, load, jobs, clients).items():
                    readings.add(f"{figure}_{what}", cost)
            for what in (*COSTS, *COUNTS):
                readings.ratio(
                    f"shards.{name}_{load}_{what}_ratio",
                    f"shards.{name}_{load}_{what}",
                    f"shards.one_{name}_{load}_{what}",
                )


def _job_costs(env: Environment, side: Side, load: str, jobs: int, clients: Sequence[redis.Redis]) -> dict[str, float]:
    """µs of CPU for each job: of this process and all servers to enqueue it, of worker and servers to run it. And
    counts, which other work on the machine does not change."""
    from benchmarks.jobs import mark, nap

    with _sharded(env, side.urls, clients):
        names = [
            _client_of(number % len(side.urls), side.urls, 1000 * (number // len(side.urls))) for number in range(320)
        ]
        tasks = [(mark if load == "noop" else nap).using(client=name) for name in names]
        rest = () if load == "noop" else (2,)
        first = ONE_BY_ONE
        for task in tasks:  # or else some of the others would open connections and load scripts
            task.delay(0, *rest)
        former, _ = _executed(clients)
        spent, on_servers = time.process_time(), sum(map(redis_cpu, clients))
        for number in range(1, first):
            tasks[number % len(tasks)].delay(number, *rest)
        enqueue = (time.process_time() - spent) / first * 1e6, (sum(map(redis_cpu, clients)) - on_servers) / first * 1e6
        enqueue_commands = (_executed(clients)[0] - former) / first
        for at, task in enumerate(tasks):
            task.delay_many([((number, *rest), {}) for number in range(first, jobs) if number % len(tasks) == at])
        with env.worker(*side.options) as worker:
            _wait_until_done(env, FROM * jobs, jobs, worker)
            family, done = family_of(worker.pid), marked(jobs)
            in_worker, on_servers, before = cpu_seconds(family), sum(map(redis_cpu, clients)), _executed(clients)
            _wait_until_done(env, TO * jobs, jobs, worker)
            part = (marked(jobs) - done) / 1e6
            if not part:
                raise MeasurementFailed("All jobs were done between two samples: too few for this machine.")
            ended, after = (cpu_seconds(family), sum(map(redis_cpu, clients))), _executed(clients)
        run = (ended[0] - in_worker) / part, (ended[1] - on_servers) / part
        counts = [(now - then) / part / 1e6 for then, now in zip(before, after, strict=True)]
        return dict(zip((*COSTS, *COUNTS), (*enqueue, *run, enqueue_commands, *counts), strict=True))


def _executed(clients: Sequence[redis.Redis]) -> tuple[int, int]:
    """The commands that servers have executed, also in scripts, and the calls of scripts."""
    stats = [of_command for client in clients for of_command in client.info("commandstats").items()]
    calls = [(name, of_command["calls"]) for name, of_command in stats if name != "cmdstat_info"]
    return sum(number for _, number in calls), sum(number for name, number in calls if name == "cmdstat_evalsha")


def _wait_until_done(env: Environment, wanted: float, jobs: int, worker: subprocess.Popen[bytes]) -> None:
    env.wait_until(lambda: marked(jobs) >= wanted, f"{wanted:,.0f} jobs are done", worker, every=0.005)


# -- a worker that has nothing to do


def _wait_until_idle(env: Environment, urls: Sequence[str], worker: subprocess.Popen[bytes]) -> None:
    """Until each shard that the worker serves has run a job."""
    from benchmarks.jobs import mark

    for shard in range(len(urls)):
        task = mark.using(client=_client_of(shard, urls)) if len(urls) > 1 else mark
        task.delay_many([((shard * 64 + number,), {}) for number in range(64)])
    env.wait_until(lambda: marked(64 * len(urls)) == 64 * len(urls), "the first jobs are done", worker, every=0.05)


def _idle(
    env: Environment, readings: Readings, servers: Sequence[PrivateRedis], clients: Sequence[redis.Redis]
) -> None:
    """All at the same time, each with a server of its own."""
    with ExitStack() as stack:
        workers = {}
        for (count, options), server, client in zip(IDLE.items(), servers, clients, strict=True):
            urls = [f"redis://127.0.0.1:{server.port}/{number}" for number in range(count)]
            with _sharded(env, urls, [client]):
                worker = stack.enter_context(env.worker(*options, url=urls[0]))
                _wait_until_idle(env, urls, worker)
            workers[count] = worker.pid, client
        time.sleep(SETTLE_SECONDS)
        families = {count: (family_of(pid), client) for count, (pid, client) in workers.items()}
        before = {count: (cpu_seconds(family), redis_cpu(client)) for count, (family, client) in families.items()}
        time.sleep(IDLE_SECONDS)
        for count, (family, client) in families.items():
            in_worker, on_server = before[count]
            readings.add(f"shards.idle_cpu_{count}", (cpu_seconds(family) - in_worker) / IDLE_SECONDS * 60)
            readings.add(f"shards.idle_redis_{count}", (redis_cpu(client) - on_server) / IDLE_SECONDS * 60)
            readings.add(f"shards.idle_pss_{count}", memory_mb(family, "Pss"))
    for count in (8, 16):
        readings.ratio(f"shards.idle_cpu_{count}_vs_1", f"shards.idle_cpu_{count}", "shards.idle_cpu_1")


def _wake_ups(env: Environment, readings: Readings, urls: Sequence[str], clients: Sequence[redis.Redis]) -> None:
    """From delay() to the first line of the job: blocks with one shard and with eight, in turn."""
    from benchmarks.jobs import record_start

    times: dict[int, list[float]] = {1: [], 8: []}
    for _ in range(2 if env.is_quick else ROUNDS):
        for count, of_count in times.items():
            with _sharded(env, urls[:count], clients), env.worker() as worker:
                _wait_until_idle(env, urls[:count], worker)
                tasks = [record_start.using(client=_client_of(shard, urls[:count])) for shard in range(count)]
                for slot in range(1, WARM_UP + SAMPLES):
                    took = sample(env, worker, slot, tasks[slot % count].delay, PAUSE_SECONDS[""])
                    if slot >= WARM_UP:
                        of_count.append(took)
    for count, of_count in times.items():
        readings.add(f"shards.wake_up_{count}", percentile(of_count, 50))
    readings.ratio("shards.wake_up_8_vs_1", "shards.wake_up_8", "shards.wake_up_1")


# -- the others while one is down


def _outages(
    env: Environment, readings: Readings, servers: Sequence[PrivateRedis], clients: Sequence[redis.Redis]
) -> None:
    """The latency of jobs in two shards before, while and after the third one is killed, or hangs. All have work."""
    ways: dict[str, tuple[Callable[[PrivateRedis], object], Callable[[PrivateRedis], object]]] = {
        "killed": (PrivateRedis.kill, PrivateRedis.start),
        "stopped": (PrivateRedis.pause, PrivateRedis.resume),
    }
    urls, down = [server.url for server in servers], servers[2]
    for way, (begin, end) in ways.items():
        with _sharded(env, urls, clients), env.worker() as worker:
            _wait_until_idle(env, urls, worker)
            with _Load(_client_of(2, urls, 5000)) as load:
                slots = itertools.count(1)
                around = _latencies(env, urls, worker, slots, AROUND_SECONDS)
                began, accepted = time.monotonic(), load.accepted
                begin(down)
                try:
                    meanwhile = _latencies(env, urls, worker, slots, DOWN_SECONDS)
                finally:
                    end(down)
                load.wait(env, accepted + 10, worker)
                readings.remark(f"shards: one server was {way} for {time.monotonic() - began:.0f} s")
                around += _latencies(env, urls, worker, slots, AROUND_SECONDS)
            load.wait_until_done(env, worker)
            readings.add(f"shards.others_p50_{way}_before", percentile(around, 50))
            readings.add(f"shards.others_p50_{way}", percentile(meanwhile, 50))
            readings.ratio(f"shards.others_{way}_ratio", f"shards.others_p50_{way}", f"shards.others_p50_{way}_before")


def _latencies(
    env: Environment, urls: Sequence[str], worker: subprocess.Popen[bytes], slots: Iterator[int], seconds: float
) -> list[float]:
    from benchmarks.jobs import record_start

    tasks = [record_start.using(client=_client_of(shard, urls)) for shard in (0, 1)]
    until, times = time.monotonic() + seconds, list[float]()
    while time.monotonic() < until:
        slot = next(slots)
        times.append(sample(env, worker, slot, tasks[slot % 2].delay, (0.03, 0.05)))
    return times


class _Load:
    """Enqueues jobs of a client until the end of the block. They mark their numbers; `accepted` counts them."""

    def __init__(self, client: str) -> None:
        self._client, self.accepted = client, 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Load:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def wait(self, env: Environment, wanted: int, worker: subprocess.Popen[bytes]) -> None:
        """Until so many are accepted."""
        env.wait_until(lambda: self.accepted > wanted, "jobs are accepted", worker)

    def wait_until_done(self, env: Environment, worker: subprocess.Popen[bytes]) -> None:
        """Until all that were accepted have run."""
        env.wait_until(lambda: marked(self.accepted) >= self.accepted, "all accepted jobs ran", worker, every=0.05)

    def _run(self) -> None:
        from benchmarks.jobs import mark
        from django_rtq import BrokerUnavailable

        task = mark.using(client=self._client)
        while not self._is_over.wait(0.02):
            try:
                task.delay(self.accepted)
                self.accepted += 1
            except BrokerUnavailable:  # it may be stored, and marks the number of the next one
                pass
