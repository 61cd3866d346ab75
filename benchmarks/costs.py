"""Walk all pages and commands of a large installation: python -m benchmarks.costs [--size 0.01] [--only tasks clients]

Prints what each costs, the worst ten, and the longest scripts. Exit code 1 with --check if one exceeds its limit.
benchmarks/README.md explains the figures.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import redis

from benchmarks import large_installation
from benchmarks.processes import cpu_seconds
from testproject.redis_server import PrivateRedis

T = TypeVar("T")
LONG_SECONDS = 5.0
SCRIPT_MS, PAGE_KB, PAGE_CPU_MS = 5.0, 150.0, 100.0
ROOT = "/admin/django_rtq"
TASK, CLIENT, DEAD_TASK = "shop.orders.tasks.task_7", "client-7", "shop.orders.tasks.task_1"
PAGES = {
    "overview": "/queue/",
    "overview 30 d": "/queue/?span=30d",
    "queue": "/queue/flood/",
    "queue, scheduled": "/queue/flood/?state=scheduled",
    "queue, running": "/queue/queue-1/?state=running",
    "queue, dead": "/queue/dead-1/?state=dead",
    "queue, by client": f"/queue/flood/?state=queued&q=client:{CLIENT}",
    "queue, by task": "/queue/flood/?state=queued&q=task:nosuch",
    "purge?": "/job/bulk/purge/?q=queue:flood",
    "dead letters": "/deadletter/",
    "requeue all?": "/job/bulk/requeue/?q=queue:dead-1+state:dead",
    "requeue some?": f"/job/bulk/requeue/?q=queue:dead-1+state:dead+task:{DEAD_TASK}",
    "running jobs": "/job/",
    "job": "/job/{job}/?queue=flood",
    "cancel all?": "/job/bulk/cancel/?q=queue:flood+state:queued",
    "cancel some?": "/job/bulk/cancel/?q=queue:flood+state:queued+task:nosuch",
    "cancel delayed?": "/job/bulk/cancel/?q=queue:flood+state:scheduled",
    "search by word": "/job/search/?q=nosuchword",
    "search by client": f"/job/search/?q=client:{CLIENT}",
    "search by client and word": f"/job/search/?q=client:{CLIENT}+nosuchword",
    "workers": "/worker/",
    "tasks": "/registeredtask/",
    "task": f"/registeredtask/{TASK}/",
    "cancel task?": f"/job/bulk/cancel/?q=task:={TASK}",
    "clients": "/client/",
    "clients, searched": "/client/?search=99",
    "client": f"/client/client/?client={CLIENT}",
    "limits": f"/client/limits/?client={CLIENT}&queue=flood",
    "purge client?": f"/job/bulk/purge/?q=queue:flood+client:{CLIENT}",
    "cancel client?": f"/job/bulk/cancel/?q=client:{CLIENT}",
    "schedules": "/schedule/",
}
COMMANDS = {
    "rtq": "rtq",
    "rtq --check": "rtq --check",
    "rtq_metrics": "rtq_metrics",
    "rtq_queues list": "rtq_queues list",
    "rtq_workers list": "rtq_workers list",
    "rtq_tasks list": "rtq_tasks list",
    "rtq_clients list": "rtq_clients list flood",
    "rtq_jobs list": "rtq_jobs list",
    "rtq_jobs list --client": f"rtq_jobs list --client {CLIENT}",
    "rtq_jobs list --queue --client": f"rtq_jobs list --queue flood --client {CLIENT}",
    "rtq_jobs list --query client": "rtq_jobs list --query client:client-8",
    "rtq_jobs list --query word": "rtq_jobs list --query nosuchword",
    "rtq_jobs show": "rtq_jobs show {job}",
    "rtq_schedule list": "rtq_schedule list",
}


@dataclass(slots=True)
class Cost:
    """What one call of a page or command costs."""

    web_ms: float  # CPU of this process
    redis_ms: float  # CPU of Redis
    commands: int  # of Redis, also those inside scripts
    received_kb: float  # from Redis
    kb: float  # of the page
    scripts: dict[str, float] = field(default_factory=dict)  # name -> the longest of its calls, ms

    @property
    def script_ms(self) -> float:
        return max(self.scripts.values(), default=0.0)


class Meter:
    """Measures calls. For one thread. Other load of the machine hardly changes the figures."""

    def __init__(self, server: redis.Redis, repeats: int) -> None:
        self._redis, self._repeats = server, repeats
        self._redis_pid = int(server.info("server")["process_id"])

    def cost(self, call: Callable[[], int], before: Callable[[], object] = lambda: None) -> Cost:
        """The least of each figure over some calls; `before` prepares each of them. `call` returns its bytes."""
        costs = self._repeated(lambda: self._once(call, before))
        before()
        with recorded() as commands:
            call()
        longest = self._longest(commands)
        least = {name: min(each[name] for each in costs) for name in costs[0]}
        return Cost(**least, scripts=longest)

    def _once(self, call: Callable[[], int], before: Callable[[], object]) -> dict[str, Any]:
        before()
        commands, sent = self._counts()
        of_redis, own = cpu_seconds([self._redis_pid]), cpu_seconds([os.getpid()])
        size = call()
        own, of_redis = cpu_seconds([os.getpid()]) - own, cpu_seconds([self._redis_pid]) - of_redis
        commands, sent = (now - then for now, then in zip(self._counts(), (commands, sent), strict=True))
        return {
            "web_ms": own * 1000,
            "redis_ms": of_redis * 1000,
            "commands": commands - 1,  # without its own INFO
            "received_kb": max(0.0, sent / 1000 - 5),
            "kb": size / 1000,
        }

    def _repeated(self, measure: Callable[[], T]) -> list[T]:
        """So many results, fewer of what takes long."""
        results, ends = [measure()], time.monotonic() + LONG_SECONDS
        while len(results) < self._repeats and time.monotonic() < ends:
            results.append(measure())
        return results

    def _counts(self) -> tuple[int, int]:
        stats = self._redis.info("everything")
        calls = sum(each["calls"] for name, each in stats.items() if name.startswith("cmdstat_"))
        return calls, stats["total_net_output_bytes"]

    def _longest(self, commands: list[Any]) -> dict[str, float]:
        """Of each script that reads, the CPU time of Redis for the longest of these calls, ms: each is sent again."""
        from django_rtq.core.broker.brokers import get_broker
        from django_rtq.core.broker.redis.commands import SCRIPTS_BY_SHA
        from django_rtq.core.broker.scripts import SCRIPTS

        longest: dict[str, float] = {}
        for command in commands:
            name = SCRIPTS_BY_SHA[command[1]].name if command[0] == b"EVALSHA" else ""
            if name and SCRIPTS[name]._folder == "queries":
                again = partial(get_broker().redis.execute_one, command)
                ms = self._ms_of(again)
                if ms > longest.get(name, 0.0):  # or it may have been something else that Redis did meanwhile
                    ms = min(ms, *(self._ms_of(again) for _ in range(2)))
                longest[name] = max(ms, longest.get(name, 0.0))
        return longest

    def _ms_of(self, call: Callable[[], object]) -> float:
        used = cpu_seconds([self._redis_pid])
        call()
        return (cpu_seconds([self._redis_pid]) - used) * 1000


@contextmanager
def recorded() -> Iterator[list[Any]]:
    """Collects the commands that are sent to Redis."""
    from django_rtq.core.broker.redis.client import RedisClient

    commands: list[Any] = []
    exchange = RedisClient._exchange

    def noted(self: RedisClient, asked: Any, **options: Any) -> Any:
        commands.extend(asked)
        return exchange(self, asked, **options)

    RedisClient._exchange = noted  # type: ignore[method-assign]
    try:
        yield commands
    finally:
        RedisClient._exchange = exchange  # type: ignore[method-assign]


def main() -> int:
    """Returns the exit code."""
    options = _options()
    with _Server() as server:
        started = time.perf_counter()
        job = large_installation.fill(server, options.size)
        print(f"filled in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        costs = dict(_measure(Meter(server, options.repeats), job, options.only))
    print(_table(costs))
    if options.json:
        found = {name: [_as_json(cost) for cost in pair] for name, pair in costs.items()}
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    return 1 if options.check and any(_excess(*pair) for pair in costs.values()) else 0


class _Server:
    """A private server, and Django set up for it."""

    def __enter__(self) -> redis.Redis:
        self._server = PrivateRedis()
        self._server.start()
        os.environ["RTQ_BENCH_REDIS"] = self._server.url
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.admin_settings"
        import django

        django.setup()
        return redis.Redis(port=self._server.port, socket_timeout=600)

    def __exit__(self, *exc_info: object) -> None:
        self._server.stop()


def _measure(meter: Meter, job: str, only: list[str]) -> Iterator[tuple[str, tuple[Cost, Cost]]]:
    """Of each page and command: what it costs in a fresh process, and again in the same one."""
    from benchmarks.pages import signed_in

    client = signed_in()

    def page(path: str) -> int:
        answer = client.get(ROOT + path)
        if answer.status_code != 200:
            raise SystemExit(f"{path} answered {answer.status_code}: {answer.content[:500]!r}")
        return len(answer.content)

    calls: dict[str, Callable[[], int]] = {
        **{name: partial(page, path.format(job=job)) for name, path in PAGES.items()},
        **{name: partial(_command, line.format(job=job)) for name, line in COMMANDS.items()},
    }
    for name, call in calls.items():
        if not only or any(each in name for each in only):
            _forget()
            call()  # loads templates and scripts
            pair = meter.cost(call, before=_forget), meter.cost(call)
            print(_line(name, *pair), file=sys.stderr, flush=True)
            yield name, pair


def _command(line: str) -> int:
    from django.core.management import call_command

    output = io.StringIO()
    # rtq --check exits if something is wrong.
    with redirect_stdout(output), redirect_stderr(io.StringIO()), suppress(SystemExit):
        call_command(*line.split(), stdout=output, no_color=True)
    return len(output.getvalue().encode())


def _forget() -> None:
    """Forget what was read before, as a process that has just started."""
    from django_rtq.console.reading import readers

    readers._readers_of.cache_clear()


def _excess(first: Cost, again: Cost) -> str:
    """Which limits are exceeded, in words."""
    over = []
    if (ms := max(first.script_ms, again.script_ms)) > SCRIPT_MS:
        over.append(f"script {ms:.1f} ms")
    if first.kb > PAGE_KB:
        over.append(f"{first.kb:.0f} kB")
    if (ms := again.web_ms + again.redis_ms) > PAGE_CPU_MS:
        over.append(f"CPU {ms:.0f} ms")
    return ", ".join(over)


_HEAD = f"{'':32} {'CPU':>7} {'Redis':>7} {'first':>7} {'commands':>9} {'from Redis':>11} {'kB':>7} {'script':>7}"


def _line(name: str, first: Cost, again: Cost) -> str:
    numbers = f"{again.web_ms:7.1f} {again.redis_ms:7.1f} {first.web_ms + first.redis_ms:7.1f} {first.commands:9,}"
    script = max(first.script_ms, again.script_ms)
    return f"{name:32} {numbers} {first.received_kb:8,.0f} kB {first.kb:7.0f} {script:7.2f} {_excess(first, again)}"


def _table(costs: dict[str, tuple[Cost, Cost]]) -> str:
    def weight(pair: tuple[Cost, Cost]) -> float:
        first, again = pair
        ratios = (first.kb / PAGE_KB, (again.web_ms + again.redis_ms) / PAGE_CPU_MS)
        return max(*ratios, first.script_ms / SCRIPT_MS, again.script_ms / SCRIPT_MS)

    worst = sorted(costs.items(), key=lambda each: weight(each[1]), reverse=True)[:10]
    longest: dict[str, tuple[float, str]] = {}
    for name, pair in costs.items():
        for cost in pair:
            for script, ms in cost.scripts.items():
                longest[script] = max((ms, name), longest.get(script, (0.0, "")))
    scripts = sorted(longest.items(), key=lambda each: each[1], reverse=True)[:10]
    return "\n".join(
        [
            "\nThe worst ten pages and commands (ms of CPU in a process that has read it before; first: both in a",
            "fresh one, as commands, from Redis and kB; script: the longest, ms of CPU):\n",
            _HEAD,
            *(_line(name, *pair) for name, pair in worst),
            "\nThe longest scripts (ms):\n",
            *(f"{script:32} {ms:7.2f}  {name}" for script, (ms, name) in scripts),
        ]
    )


def _as_json(cost: Cost) -> dict[str, Any]:
    return {name: getattr(cost, name) for name in Cost.__slots__}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--size", type=float, default=1.0, metavar="N", help="a share of the jobs, clients and workers (default: 1)")
    add("--only", nargs="+", default=[], metavar="TEXT", help="only pages and commands with this in their name")
    add("--repeats", type=int, default=5, metavar="N", help="calls of each, of which the least counts (default: 5)")
    add("--json", metavar="FILE", help="write all figures as JSON")
    add("--check", action="store_true", help="exit with code 1 if a limit is exceeded")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
