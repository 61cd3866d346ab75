"""What Redis does for a workflow with a step of 1,000,000 jobs: python -m benchmarks.large_workflow

Does the same with a step of 1,000 jobs. Prints of each script and command the CPU time of Redis for its calls, and with
callgrind the instructions of the calls that have to do with a whole step. Exit code 1 with --check if one of these
exceeds its limit. Needs valgrind. benchmarks/README.md explains the figures.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from benchmarks.instructions import callgrind, counting, tell
from benchmarks.processes import cpu_seconds
from django_rtq.workflows import workflow_store
from testproject import redis_server
from testproject.redis_server import PrivateRedis

SMALL, LARGE = 1_000, 1_000_000
MOST_INSTRUCTIONS = 35_000_000  # of one call: as many took about 5 ms
OTHERS = 10_000  # workflows that are open meanwhile
AT_ONCE = 128  # jobs that a worker claims and settles in a round trip
WORKER = "large:1:benchmark"
QUEUE, LATER, NOBODY = "default", "later", "nobody"
NUMBER = 123_456  # that each job returns
FAILURE = b'{"at": 1, "error_class": "ValueError", "error": "no", "traceback": ""}'


class Costs:
    """Of each command the CPU time of Redis for its calls, in ms. For one thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.ms: dict[str, list[float]] = defaultdict(list)

    def exchange(self, send: Callable[[], list[Any]], name: str) -> list[Any]:
        used = cpu_seconds([self._pid])
        replies = send()
        self.ms[name].append((cpu_seconds([self._pid]) - used) * 1000)
        return replies


class Instructions:
    """Of each command the instructions of Redis for its calls, under callgrind."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid, self._folder = pid, folder
        self.counts: dict[str, list[int]] = defaultdict(list)

    def exchange(self, send: Callable[[], list[Any]], name: str) -> list[Any]:
        with counting(self._pid, self._folder) as figures:
            replies = send()
        self.counts[name] += figures
        return replies


@contextmanager
def measured(meter: Costs | Instructions) -> Iterator[None]:
    """Sends commands one by one meanwhile, and measures each."""
    from django_rtq.core.broker.redis.client import RedisClient
    from django_rtq.core.broker.redis.commands import name_of

    exchange = RedisClient._exchange

    def one_by_one(client: RedisClient, commands: Sequence[Any], **options: Any) -> list[Any]:
        replies = []
        for command in commands:
            name = name_of(command).removeprefix("EVALSHA ")
            replies += meter.exchange(lambda command=command: exchange(client, [command], **options), name)  # type: ignore[misc]
        return replies

    RedisClient._exchange = one_by_one  # type: ignore[method-assign]
    try:
        yield
    finally:
        RedisClient._exchange = exchange  # type: ignore[method-assign]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=LARGE, metavar="N", help=f"of the large step (default: {LARGE:,})")
    parser.add_argument("--check", action="store_true", help="exit with code 1 if a limit is exceeded")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("Install valgrind: apt-get install valgrind", file=sys.stderr)
        return 2
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.admin_settings"
    os.environ["RTQ_BENCH_REDIS"] = "redis://127.0.0.1:1/0"  # until there is one
    from benchmarks.pages import signed_in

    client = signed_in()
    sizes = (SMALL, options.jobs)
    costs, counts = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            snapshot = Path(folder) / f"{size}.rdb"
            costs[size] = _live(client, size, snapshot)
            print(f"{size:,} jobs have run", file=sys.stderr, flush=True)
            counts[size] = _count(snapshot, Path(folder))
    print(_table(costs, "CPU ms"))
    print()
    print(_table(counts, "instructions"))
    most = max(max(each, default=0) for of_size in counts.values() for each in of_size.values())
    return 1 if options.check and most > MOST_INSTRUCTIONS else 0


@contextmanager
def _use(server: PrivateRedis) -> Iterator[redis.Redis]:
    """This process uses this server meanwhile, which knows all scripts."""
    from django.test import override_settings

    from benchmarks.settings import RTQ
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.scripts import SCRIPTS

    options = {**RTQ, "REDIS": server.url, "SOCKET_TIMEOUT": 120.0, "LEASE_SECONDS": 3600.0}
    with override_settings(RTQ=options), redis.Redis(port=server.port, protocol=2) as connection:
        for script in SCRIPTS.values():
            connection.script_load(script.text)
        yield connection
        get_broker().close()


def _live(client: Any, size: int, snapshot: Path) -> dict[str, list[float]]:
    """Make workflows with a step of so many jobs, and let things happen to them. Of one all jobs have ended but some,
    of another the step is about to start: of that comes a snapshot."""
    with PrivateRedis() as server, _use(server) as connection:
        meter = Costs(server.pid)
        _open_others()
        with measured(meter):
            later, flow = _make(size, LATER), _make(size, QUEUE)
            _end(QUEUE, 1)
            _end(QUEUE, size - 2 * AT_ONCE)
            connection.set("benchmark", f"{flow.id} {later.id}")
            connection.save()
            shutil.copy(Path(str(connection.config_get("dir")["dir"])) / "dump.rdb", snapshot)
            _end(QUEUE, 1, "bury")
            _look(client, flow)
            flow.requeue_dead()
            _end(QUEUE, size)
            _check_state(flow, "succeeded")
            if sum(flow.results("return_number")) != size * NUMBER:
                raise SystemExit("Results were lost.")
            _end(LATER, 1)
            _add_steps(LATER, 99)
            _cancel_some(later)
            _check_state(later, "cancelled")
            _forget(flow, later)
    return meter.ms


def _count(snapshot: Path, folder: Path) -> dict[str, list[int]]:
    """The instructions of Redis from a snapshot on: a step begins, another one ends, and what waits for it begins."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.workflows.handle import get_workflow
    from django_rtq.workflows.store import Part

    server = PrivateRedis(arguments=["--dbfilename", snapshot.name, "--dir", str(folder)])
    # Nothing is counted, and so all is faster, until it has loaded the snapshot.
    with callgrind(folder, "processCommand", "--instr-atstart=no"), _patient(), server, _use(server) as connection:
        tell(server.pid, "instrumentation", "on")
        flow, later = map(get_workflow, connection.get("benchmark").decode().split())
        meter = Instructions(server.pid, folder)
        with measured(meter):
            _end(QUEUE, 3 * AT_ONCE)
            _check_state(flow, "succeeded")
            store = workflow_store(get_broker())
            store.start = lambda parts: None  # type: ignore[method-assign]  # or else all parts of the step
            _end(LATER, 1)
            store._redis.execute([store._start_command(Part(later.id, f"1:{500 * n}", LATER)) for n in range(2)])
            store.cancel(later.id)
    return meter.counts


@contextmanager
def _patient() -> Iterator[None]:
    """Servers may take their time to start meanwhile."""
    seconds, redis_server.START_SECONDS = redis_server.START_SECONDS, 300.0
    try:
        yield
    finally:
        redis_server.START_SECONDS = seconds


def _open_others() -> None:
    from benchmarks.jobs import noop
    from django_rtq import workflow

    parked = noop.using(queue_name=NOBODY)
    for _ in range(OTHERS):
        with workflow("open") as flow:
            flow.after(flow.add(parked, 7, 0)).add(parked, 7, 0)


def _make(size: int, queue: str) -> Any:
    """A workflow with a job, a step of so many jobs behind it, and two jobs behind that: one takes its results."""
    from benchmarks.jobs import noop, return_number
    from django_rtq import workflow

    with workflow("large") as flow:
        first = flow.add(noop.using(queue_name=queue), 7, 0)
        many = return_number.using(queue_name=queue)
        members = flow.after(first).add_many(many, (((7, number), {}) for number in range(size)))
        flow.after(members).add(noop.using(queue_name=queue), 7, 0)
        flow.add(noop.using(queue_name=queue), 7, members.results)
    return flow.handle


def _end(queue: str, jobs: int, verb: str = "ack") -> None:
    """Claim so many jobs, or all that there are, and end them as a worker does."""
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.settlement import Report, Settlement
    from django_rtq.core.broker.worker_broker import for_workers

    broker = for_workers(get_broker())
    broker.sign_on([queue], WORKER)
    text = b'{"result": %d}' % NUMBER if verb == "ack" else FAILURE
    while jobs > 0 and (claimed := broker.claim(WORKER, [queue], min(jobs, AT_ONCE)).claimed):
        settlement = Settlement()
        for job_id in claimed[0].ids:
            settlement.add(Report(verb, job_id, 3_600_000, text))
        broker.settle(WORKER, queue, settlement)
        jobs -= len(claimed[0].ids)
    broker.sign_off([queue], WORKER)


def _look(client: Any, flow: Any) -> None:
    """What people and heartbeats look at."""
    from django_rtq.core.broker.brokers import get_broker

    flow.progress()
    workflow_store(get_broker()).sweep([QUEUE])
    for url in ("", f"{flow.id}/", f"{flow.id}/cancel/"):
        answer = client.get(f"/admin/django_rtq/workflow/{url}")
        if answer.status_code != 200:
            raise SystemExit(f"{url} answered {answer.status_code}: {answer.content[:500]!r}")


def _add_steps(queue: str, steps: int) -> None:
    """Let a job add steps of 500 jobs each to its workflow."""
    from benchmarks.jobs import noop
    from django_rtq.core.broker.brokers import get_broker
    from django_rtq.core.broker.worker_broker import for_workers
    from django_rtq.workflows.builder import AddedSteps
    from django_rtq.workflows.steps.store import Holder

    broker = for_workers(get_broker())
    broker.sign_on([queue], WORKER)
    (claimed,) = broker.claim(WORKER, [queue], 1).claimed
    holder = Holder(queue, claimed.ids[0].decode(), WORKER, claimed.now_ms)
    added = AddedSteps(holder, headers={}, backend="", passed_by_later=lambda: "")
    for number in range(steps):
        added.add_many(noop.using(queue_name=NOBODY), [((7, number), {})] * 500)
    added.send()


def _cancel_some(flow: Any) -> None:
    """Cancel a workflow, and the waiting jobs of its first part, as a worker does at the first death."""
    from django_rtq.core.broker.brokers import get_broker

    store = workflow_store(get_broker())
    store.cancel(flow.id)
    store.cancel_members(flow.id, most_jobs=500)


def _check_state(flow: Any, state: str) -> None:
    if flow.state != state:
        raise SystemExit(f"Workflow {flow.id} is {flow.state}, but should be {state}.")


def _forget(*flows: Any) -> None:
    from django_rtq.core.broker.brokers import get_broker

    store = workflow_store(get_broker())
    store.forget_old()
    for flow in flows:
        answer = store.forget(flow.id, latest_ms=int(time.time() * 1000))
        if answer != "forgotten":
            raise SystemExit(f"Workflow {flow.id} is not forgotten, but {answer}.")


def _table(figures: dict[int, dict[str, list[Any]]], unit: str) -> str:
    names = {name for each in figures.values() for name in each}
    largest = figures[max(figures)]
    lines = [f"{unit:20}" + "".join(f"{size:>39,} jobs" for size in figures)]
    lines.append(f"{'':20}" + f"{'calls':>8}{'median':>12}{'p99':>12}{'worst':>12}" * len(figures))
    for name in sorted(names, key=lambda name: -max(largest.get(name, [0]))):
        lines.append(f"{name:20}" + "".join(_cells(sorted(each.get(name, ()))) for each in figures.values()))
    return "\n".join(lines)


def _cells(figures: list[Any]) -> str:
    if not figures:
        return " " * 44
    shown = [figures[min(int(len(figures) * part), len(figures) - 1)] for part in (0.5, 0.99, 1)]
    return f"{len(figures):>8,}" + "".join(f"{n:>12,}" if isinstance(n, int) else f"{n:>12.3f}" for n in shown)


if __name__ == "__main__":
    sys.exit(main())
