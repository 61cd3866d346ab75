"""Admin: what the pages' questions cost with very many jobs, and how fast many dead letters live again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Readings
from benchmarks.stage import MeasurementFailed, Stage, say

if TYPE_CHECKING:
    from django_rtq.broker.broker import NewJob

QUEUE, GRAVEYARD, QUEUES, CLIENTS, DAY = "crowd", "graveyard", 50, 10_000, 1440
WORKER = "admin:1:benchmark"
BODY = '{"task":"benchmarks.jobs.%s","args":[7,42]}'
TRACEBACK = "".join(f'  File "shop/tasks.py", line {n}, in step_{n}\\n    proceed()\\n' for n in range(30))
ASKED = 15  # times


def measure(stage: Stage, readings: Readings) -> None:
    """Fill once, then ask again and again."""
    from django_rtq.inspector.inspector import JobFilter, get_inspector

    stage.clear()
    waiting, dead = (100_000, 5_000) if stage.is_quick else (1_000_000, 50_000)
    started = time.perf_counter()
    _fill(stage, waiting)
    _bury(dead)
    say(f"  {waiting:,} jobs wait, {dead:,} are dead, after {time.perf_counter() - started:.1f} s")
    readings.remark(f"admin: {QUEUES} queues, {waiting:,} jobs of {CLIENTS:,} clients wait, {dead:,} are dead")
    inspector = get_inspector()
    inspector.listing(QUEUE, "queued")
    questions: dict[str, Callable[[], Any]] = {
        "front": inspector.front,
        "front_day": lambda: inspector.front(DAY),
        "queued": lambda: inspector.listing(QUEUE, "queued"),
        "dead": lambda: inspector.listing(GRAVEYARD, "dead"),
        "clients": lambda: inspector.clients(QUEUE),
        "tasks": lambda: inspector.tasks(24),
        "groups": lambda: inspector.dead_groups(GRAVEYARD),
        "filter": lambda: inspector.listing(GRAVEYARD, "dead", filter=JobFilter(error_class="NoSuchError")),
    }
    for name, question in questions.items():
        with Probe(stage) as probe:
            costs = [_ms(question) for _ in range(ASKED)]
        readings.add(f"admin.{name}", median(costs))
        readings.add(f"admin.{name}_block", probe.longest_ms)
    _look(stage, readings)
    _requeue_all(stage, readings, dead)
    _empty_graveyard(stage)
    _bury(dead)
    _click(stage, readings, dead)
    stage.clear()


class Probe:
    """Asks the server afterwards for how long its longest command took: so long it was not there for others."""

    def __init__(self, stage: Stage) -> None:
        self._redis = stage.redis
        self.longest_ms = 0.0

    def __enter__(self) -> Probe:
        self._redis.config_set("slowlog-log-slower-than", 500)
        self._redis.config_set("slowlog-max-len", 2000)
        self._redis.slowlog_reset()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.longest_ms = max((entry["duration"] / 1000 for entry in self._redis.slowlog_get(2000)), default=0.0)


def _ms(question: Callable[[], Any]) -> float:
    started = time.perf_counter()
    question()
    return (time.perf_counter() - started) * 1000


def _fill(stage: Stage, jobs: int) -> None:
    from django_rtq.broker.broker import get_broker

    broker = get_broker()
    for number in range(QUEUES - 2):
        broker.enqueue(f"queue-{number}", [_job(n) for n in range(100)])
    numbers = range(jobs)
    for start in range(0, jobs, 2000):
        broker.enqueue(QUEUE, [_job(number % CLIENTS) for number in numbers[start : start + 2000]])
    minute = int(time.time()) // 60
    counters = {name: 7 for name in ("enqueued", "succeeded", "failed", "dead", "run_ms", "wait_ms")}
    with stage.redis.pipeline(transaction=False) as pipe:
        for queue in broker.redis.execute_one(("SMEMBERS", broker.keys.queues)):
            for each in range(minute - DAY, minute + 1):
                counters["succeeded"] = each * 7919 % 5000  # no flat lines, which take less room on a page
                pipe.hset(broker.keys.of(queue.decode()).stats_of(each), mapping=counters)
            for hour in range(minute // 60 - 24, minute // 60 + 1):
                tasks = {f"r{bucket} benchmarks.jobs.noop": 3 for bucket in range(-40, -20)}
                pipe.hset(broker.keys.of(queue.decode()).tasks + str(hour).encode(), mapping=tasks)
            pipe.execute()


def _bury(jobs: int) -> None:
    from django_rtq.broker.broker import get_broker
    from django_rtq.broker.settlement import Settlement
    from django_rtq.jobs import serializer

    broker = get_broker()
    broker.sign_on([GRAVEYARD], WORKER)
    for start in range(0, jobs, 500):
        broker.enqueue(GRAVEYARD, [_job(n, "fail" if n % 3 else "noop") for n in range(start, start + 500)])
        (claimed,) = broker.claim(WORKER, [GRAVEYARD], 500).claimed
        kinds = ("builtins.ValueError", "redis.exceptions.TimeoutError", "shop.errors.OutOfStock")
        lines = [
            serializer.dumps({"at": 1, "error_class": kinds[n % 3], "error": "no", "traceback": TRACEBACK})
            for n in range(3)
        ]
        buried = [value for n, job_id in enumerate(claimed.ids) for value in (job_id, 1, lines[n % 3])]
        broker.settle(WORKER, GRAVEYARD, Settlement(bury=buried))
    broker.sign_off([GRAVEYARD], WORKER)


def _job(client: int, task: str = "noop") -> NewJob:
    from django_rtq.broker.broker import NewJob
    from django_rtq.jobs.job import new_job_id

    return NewJob(new_job_id(), 0, 3, f"client-{client}", "", "", "", BODY % task)


def _look(stage: Stage, readings: Readings) -> None:
    """The same through all of Django: what a person waits for, and what an open page fetches again and again."""
    for name, page in _person(stage).items():
        readings.add(f"admin.page_{name}", page["ms"])
        if name != "nothing":
            readings.add(f"admin.page_{name}_trips", page["trips"])
            readings.add(f"admin.page_{name}_kb", page["kb"])


def _person(stage: Stage, *options: str) -> dict[str, Any]:
    """What pages.py writes down."""
    answers = stage.server.directory / f"pages{len(options)}"
    with stage.process("-m", "benchmarks.pages", str(answers), *options) as child:
        stage.wait_until(answers.exists, "the pages were looked at", child, seconds=120)
    found: dict[str, Any] = json.loads(answers.read_text())
    return found


def _empty_graveyard(stage: Stage) -> None:
    for key in stage.redis.scan_iter(match=f"{{rtq:{GRAVEYARD}}}:*", count=10_000):
        stage.redis.delete(key)


def _click(stage: Stage, readings: Readings, dead: int) -> None:
    """One click on a page, beside a worker of that queue, until none of the snapshot is dead."""
    from django_rtq.inspector.inspector import get_inspector

    with stage.worker("--queues", GRAVEYARD) as worker, Probe(stage) as probe:
        started = time.perf_counter()
        _person(stage, "--click")
        stage.wait_until(lambda: not get_inspector().queue(GRAVEYARD).dead, "the dead live again", worker)
        readings.add("admin.click", time.perf_counter() - started)
    readings.add("admin.click_block", probe.longest_ms)


def _requeue_all(stage: Stage, readings: Readings, dead: int) -> None:
    """One click: all dead letters, in steps."""
    from django_rtq.inspector.inspector import JobFilter, get_inspector

    inspector, done = get_inspector(), 0
    wanted = JobFilter(task="fail")  # as from the page of a group: it has to look at every one
    idle, answers = stage.server.directory / "longest_idle", stage.server.directory / "longest"
    pinger = ("-m", "benchmarks.pinger", str(stage.server.port))
    with stage.process(*pinger, str(idle)) as child:
        stage.wait_until(idle.exists, "the first answer to a ping", child)
        time.sleep(3)
    readings.add("admin.requeue_ping_floor", float(idle.read_text()))
    with Probe(stage) as probe, stage.process(*pinger, str(answers)) as child:
        stage.wait_until(answers.exists, "the first answer to a ping", child)
        started = time.perf_counter()
        until_ms = inspector.select(GRAVEYARD, wanted).until_ms
        for wish in (wanted, JobFilter()):
            done += sum(len(step.done) for step in inspector.bulk_steps(GRAVEYARD, "requeue", wish, until_ms=until_ms))
        seconds = time.perf_counter() - started
    if done != dead:
        raise MeasurementFailed(f"{done:,} of {dead:,} dead letters were requeued.")
    readings.add("admin.requeue", seconds)
    readings.add("admin.requeue_block", probe.longest_ms)
    readings.add("admin.requeue_ping", float(answers.read_text()))
