"""Cost of the queries of the admin with very many jobs, and speed of requeueing dead letters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.environment import Environment, MeasurementFailed, print_progress
from benchmarks.figures import Readings
from benchmarks.pages import LARGE_WORKFLOW

if TYPE_CHECKING:
    from django_rtq.core.broker.messages import NewJob

QUEUE, DEAD_QUEUE, QUEUES, TASKS, CLIENTS, DAY = "flood", "dead-letters", 50, 4, 10_000, 1440
WORKER = "admin:1:benchmark"
BODY = '{"task":"benchmarks.jobs.%s","args":[7,42]}'
TRACEBACK = "".join(f'  File "shop/tasks.py", line {n}, in step_{n}\\n    proceed()\\n' for n in range(30))
REPEATS = 15  # requests per page or query


def measure(env: Environment, readings: Readings) -> None:
    """Fill Redis once, then repeat each query."""
    from django_rtq.console.reading.readers import Selection, readers_of

    dead = fill(env, readings)
    readers = readers_of()
    readers.search([(QUEUE, "queued")]).page()
    queues = readers.queues.names()
    queries: dict[str, Callable[[], Any]] = {
        "overview": readers.overview.read,
        "overview_day": lambda: readers.overview.series.history(queues, DAY, 20, time.time_ns() // 1_000_000),
        "queued": lambda: readers.search([(QUEUE, "queued")]).page(),
        "dead": lambda: readers.search([(DEAD_QUEUE, "dead")]).page(),
        "clients": lambda: readers.clients.busiest(QUEUE),
        "tasks": readers.tasks.all,
        "groups": readers.dead_letters.all_groups,
        "filter": lambda: readers.search([(DEAD_QUEUE, "dead")], filter=Selection(error_class="NoSuchError")).page(),
    }
    for name, query in queries.items():
        with Probe(env) as probe:
            costs = [_ms(query) for _ in range(REPEATS)]
        readings.add(f"admin.{name}", median(costs))
        readings.add(f"admin.{name}_block", probe.longest_ms)
    _requeue_all(env, readings, dead)
    _empty_dead_queue(env)
    _bury(dead)
    _click(env, readings, dead)
    env.clear()


def fill(env: Environment, readings: Readings) -> int:
    """Fill an empty Redis. Returns how many dead letters there are."""
    env.clear()
    waiting, dead = (100_000, 5_000) if env.is_quick else (1_000_000, 50_000)
    started = time.perf_counter()
    _fill(env, waiting)
    _bury(dead)
    print_progress(f"  {waiting:,} jobs wait, {dead:,} are dead, after {time.perf_counter() - started:.1f} s")
    readings.remark(
        f"{QUEUES} queues of {TASKS} tasks each, {waiting:,} jobs of {CLIENTS:,} clients wait, {dead:,} are dead"
    )
    return dead


class Probe:
    """Reads the time of the longest command from the slow log: the server was blocked for so long."""

    def __init__(self, env: Environment) -> None:
        self._redis = env.redis
        self.longest_ms = 0.0

    def __enter__(self) -> Probe:
        self._redis.config_set("slowlog-log-slower-than", 500)
        self._redis.config_set("slowlog-max-len", 2000)
        self._redis.slowlog_reset()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.longest_ms = max((entry["duration"] / 1000 for entry in self._redis.slowlog_get(2000)), default=0.0)


def _ms(query: Callable[[], Any]) -> float:
    started = time.perf_counter()
    query()
    return (time.perf_counter() - started) * 1000


def _fill(env: Environment, jobs: int) -> None:
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    for number in range(QUEUES - 2):
        broker.enqueue(f"queue-{number}", [_job(n) for n in range(100)])
    numbers = range(jobs)
    for start in range(0, jobs, 2000):
        broker.enqueue(QUEUE, [_job(number % CLIENTS) for number in numbers[start : start + 2000]])
    minute = int(time.time()) // 60
    counters = {name: 7 for name in ("enqueued", "succeeded", "failed", "dead", "run_ms", "wait_ms")}
    names = ["benchmarks.jobs.noop", *(f"shop.orders.tasks.task_{number}" for number in range(1, TASKS))]
    tasks = {name: number for task in names for name, number in _task_counters(task).items()}
    with env.redis.pipeline(transaction=False) as pipe:
        for queue in broker.redis.execute_one(("SMEMBERS", broker.keys.queues)):
            for each in range(minute - DAY, minute + 1):
                counters["succeeded"] = each * 7919 % 5000  # not constant: flat lines are smaller on a page
                pipe.hset(broker.keys.of(queue.decode()).stats + b"%d" % each, mapping=counters)
            for hour in range(minute // 60 - 24, minute // 60 + 1):
                pipe.hset(broker.keys.of(queue.decode()).tasks + str(hour).encode(), mapping=tasks)
            pipe.execute()
    _sign_workers_on()
    _make_workflows(1_000 if env.is_quick else 10_000)


def _make_workflows(number: int) -> None:
    """Many of two steps, and a large one that has a page."""
    from benchmarks.jobs import noop
    from django_rtq import workflow

    parked = noop.using(queue_name="workflows")
    for _ in range(number):
        with workflow("small") as flow:
            flow.after(flow.add(parked, 7, 0)).add(parked, 7, 1)
    with workflow("large") as flow:
        flow._id = flow._called.id = LARGE_WORKFLOW
        step = flow.add_many(parked, [((7, n), {}) for n in range(100_000)])
        for n in range(999):
            step = flow.after(step).add_many(parked, [((7, n), {})])


def _task_counters(task: str) -> dict[str, int]:
    """What an hour of a busy task leaves."""
    runs = {f"r{bucket} {task}": 3 for bucket in range(-45, -30)}
    waits = {f"w{bucket} {task}": 3 for bucket in range(20, 35)}
    return runs | waits | {f"{kind} {task}": 45 for kind in ("done", "failed", "retried", "run_us", "wait_ms")}


def _sign_workers_on() -> None:
    """Eight processes of one host, with two jobs each."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers, worker_info_commands

    broker = for_workers(get_broker())
    for number in range(8):
        name, queue = f"bench:{number + 1}:benchmark", f"queue-{number}"
        info = {"host": "bench", "pid": number + 1, "queues": queue, "slots": 2, "supervisor": 1}
        broker.sign_on([queue], name)
        broker.claim(name, [queue], 2)
        broker.redis.execute(list(worker_info_commands(broker.keys, {name: info})))


def _bury(jobs: int) -> None:
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.settlement import Report, Settlement
    from django_rtq.core.broker.worker_broker import for_workers
    from django_rtq.core.jobs import serializer

    broker = for_workers(get_broker())
    broker.sign_on([DEAD_QUEUE], WORKER)
    for start in range(0, jobs, 500):
        broker.enqueue(DEAD_QUEUE, [_job(n, "fail" if n % 3 else "noop") for n in range(start, start + 500)])
        (claimed,) = broker.claim(WORKER, [DEAD_QUEUE], 500).claimed
        kinds = ("builtins.ValueError", "redis.exceptions.TimeoutError", "shop.errors.OutOfStock")
        lines = [
            serializer.dumps({"at": 1, "error_class": kinds[n % 3], "error": "no", "traceback": TRACEBACK})
            for n in range(3)
        ]
        buried = [Report("bury", job_id, text=lines[n % 3].encode()) for n, job_id in enumerate(claimed.ids)]
        broker.settle(WORKER, DEAD_QUEUE, Settlement(reports=buried))
    broker.sign_off([DEAD_QUEUE], WORKER)


def _job(client: int, task: str = "noop") -> NewJob:
    from django_rtq.core.broker.messages import NewJob
    from django_rtq.core.jobs.job import new_job_id

    return NewJob(new_job_id(), 0, 3, f"client-{client}", "", "", "", BODY % task)


def run_pages(env: Environment, *options: str) -> dict[str, Any]:
    """Run pages.py and read its result."""
    answers = env.server.directory / f"pages{len(options)}"
    with env.process("-m", "benchmarks.pages", str(answers), *options) as child:
        env.wait_until(answers.exists, "the pages were fetched", child, seconds=600)
    found: dict[str, Any] = json.loads(answers.read_text())
    return found


def _empty_dead_queue(env: Environment) -> None:
    for key in env.redis.scan_iter(match=f"{{rtq:{DEAD_QUEUE}}}:*", count=10_000):
        env.redis.delete(key)


def _click(env: Environment, readings: Readings, dead: int) -> None:
    """One click on a page, with a worker on that queue, until no dead letter is left."""
    from django_rtq.console.reading.readers import readers_of

    with env.worker("--queues", DEAD_QUEUE) as worker, Probe(env) as probe:
        started = time.perf_counter()
        run_pages(env, "--click")
        env.wait_until(lambda: not readers_of().queues.get(DEAD_QUEUE).dead, "all dead letters are requeued", worker)
        readings.add("admin.click", time.perf_counter() - started)
    readings.add("admin.click_block", probe.longest_ms)


def _requeue_all(env: Environment, readings: Readings, dead: int) -> None:
    """Requeue all dead letters, in steps, as one click does."""
    from django_rtq.console.reading.readers import readers_of
    from django_rtq.console.reading.selection import Selection
    from django_rtq.console.reading.sweep import Sweep, run_steps

    readers, done = readers_of(), 0
    idle, answers = env.server.directory / "longest_idle", env.server.directory / "longest"
    ping_command = ("-m", "benchmarks.ping", str(env.server.port))
    with env.process(*ping_command, str(idle)) as child:
        env.wait_until(idle.exists, "the first answer to a ping", child)
        time.sleep(3)
    readings.add("admin.requeue_ping_baseline", float(idle.read_text()))
    with Probe(env) as probe, env.process(*ping_command, str(answers)) as child:
        env.wait_until(answers.exists, "the first answer to a ping", child)
        started = time.perf_counter()
        for task in ("fail", ""):  # as on the page of a group, where it has to read every dead letter; all
            selection = Selection(queues=[DEAD_QUEUE], task=task)
            done += run_steps(readers.sweeps.steps(Sweep(verb="requeue", selection=selection))).count
        seconds = time.perf_counter() - started
    if done != dead:
        raise MeasurementFailed(f"{done:,} of {dead:,} dead letters were requeued.")
    readings.add("admin.requeue", seconds)
    readings.add("admin.requeue_block", probe.longest_ms)
    readings.add("admin.requeue_ping", float(answers.read_text()))
