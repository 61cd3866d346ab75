"""What scripts and pages cost in a workflow with a step of 1,000,000 jobs: python -m benchmarks.large_workflow

Does the same with a step of 10 jobs, and prints of each script and command the CPU time of Redis for the dearest call.
With --instructions callgrind counts what Redis executes when the last job of the step ends (needs valgrind). Exit code
1 with --check if a call takes longer than 5 ms. benchmarks/README.md explains the figures.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from benchmarks.instructions import callgrind, counting
from benchmarks.processes import cpu_seconds
from testproject.redis_server import PrivateRedis

SMALL, LARGE = 10, 1_000_000
MOST_MS = 5.0
AT_ONCE, WORKER = 500, "large:1:benchmark"
OTHERS = 10_000  # workflows that are open meanwhile
QUEUE = "default"
NUMBER = 123_456  # that each job returns
LATEST = 10**13  # ms: everything has ended before


class Costs:
    """Of each command its calls, and the CPU time of Redis for the dearest one. For one thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.ms: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Sends commands one by one meanwhile, and measures each."""
        from django_rtq.broker.redis.client import RedisClient
        from django_rtq.broker.redis.commands import name_of

        exchange = RedisClient._exchange

        def one_by_one(client: RedisClient, commands: Sequence[Any], **options: Any) -> list[Any]:
            replies = []
            for command in commands:
                used = cpu_seconds([self._pid])
                replies += exchange(client, [command], **options)
                self.ms[name_of(command).removeprefix("EVALSHA ")].append((cpu_seconds([self._pid]) - used) * 1000)
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
    parser.add_argument("--instructions", action="store_true", help="count instructions of the last end, with valgrind")
    parser.add_argument("--check", action="store_true", help=f"exit with code 1 if a call takes {MOST_MS:g} ms")
    options = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.admin_settings"
    with PrivateRedis() as server:
        os.environ["RTQ_BENCH_REDIS"] = server.url
        from benchmarks.pages import signed_in

        costs = {size: Costs(server.pid) for size in (SMALL, options.jobs)}
        client = signed_in()
        _load_scripts(server)
        _open_others()
        for size, each in costs.items():
            with each.measured():
                _live(client, size)
            print(f"{size:,} jobs: done", file=sys.stderr, flush=True)
    print(_table(costs))
    if options.instructions:
        for size in costs:
            print(f"the last of {size:,} jobs ends: {_count_end(size):,} instructions of Redis")
    over = [name for each in costs.values() for name, ms in each.ms.items() if max(ms) >= MOST_MS]
    return 1 if options.check and over else 0


def _load_scripts(server: Any) -> None:
    from django_rtq.broker.scripts import SCRIPTS

    with redis.Redis(port=server.port) as client:
        for script in SCRIPTS.values():
            client.script_load(script.text)


def _open_others() -> None:
    from benchmarks.jobs import noop
    from django_rtq import workflow

    parked = noop.using(queue_name="nobody")
    for _ in range(OTHERS):
        with workflow("open") as flow:
            flow.after(flow.add(parked, 7, 0)).add(parked, 7, 0)


def _live(client: Any, size: int) -> None:
    """What may happen to a workflow with a step of so many jobs, and to another one that is cancelled."""
    from django_rtq.broker.brokers import get_broker

    broker, flow = get_broker(), make(size)
    _end(size - 3)
    _end(1, "bury")
    flow.progress()
    broker.workflows.sweep([QUEUE])
    for url in ("", f"{flow.id}/", f"{flow.id}/cancel/"):
        answer = client.get(f"/admin/django_rtq/workflow/{url}")
        if answer.status_code != 200:
            raise SystemExit(f"{url} answered {answer.status_code}: {answer.content[:500]!r}")
    flow.requeue_dead()
    _end(size)
    _check_state(flow, "succeeded")
    if sum(flow.results("return_number")) != size * NUMBER:
        raise SystemExit("Results were lost.")
    broker.workflows.forget_old()
    broker.workflows.forget(flow.id, latest_ms=int(time.time() * 1000))
    flow = make(size)
    _end(1)
    _add_steps(100)
    broker.workflows.cancel(flow.id)
    broker.workflows.cancel_members(flow.id, most_parts=4)
    _check_state(flow, "cancelled")
    broker.workflows.forget(flow.id, latest_ms=int(time.time() * 1000))


def _check_state(flow: Any, state: str) -> None:
    if flow.state != state:
        raise SystemExit(f"Workflow {flow.id} is {flow.state}, but should be {state}.")


def make(size: int) -> Any:
    """A workflow with a step of so many jobs, and a callback."""
    from benchmarks.jobs import noop, return_number
    from django_rtq import workflow

    with workflow("large") as flow:
        members = flow.add_many(return_number, (((7, number), {}) for number in range(size)))
        flow.after(members).add(noop, 7, 0)
        flow.add(noop, 7, members.results)
    return flow.handle


def _end(jobs: int, verb: str = "ack") -> None:
    """Claim so many jobs, or all that there are, and end them as a worker does."""
    from django_rtq.broker.brokers import get_broker
    from django_rtq.broker.settlement import Report, Settlement

    broker = get_broker()
    broker.sign_on([QUEUE], WORKER)
    while jobs > 0 and (claimed := broker.claim(WORKER, [QUEUE], min(jobs, AT_ONCE)).claimed):
        settlement = Settlement()
        text = b'{"result": %d}' % NUMBER if verb == "ack" else b'{"at": 1, "error_class": "ValueError", "error": "no", "traceback": ""}'
        for job_id in claimed[0].ids:
            settlement.add(Report(verb, 3_600_000, text), job_id)
        broker.settle(WORKER, QUEUE, settlement)
        jobs -= len(claimed[0].ids)
    broker.sign_off([QUEUE], WORKER)


def _add_steps(steps: int) -> None:
    """Let a job add steps of 500 jobs each to its workflow."""
    from benchmarks.jobs import noop
    from django_rtq.broker.brokers import get_broker
    from django_rtq.broker.job_steps import Holder
    from django_rtq.workflows.builder import AddedSteps

    broker = get_broker()
    broker.sign_on([QUEUE], WORKER)
    (claimed,) = broker.claim(WORKER, [QUEUE], 1).claimed
    holder = Holder(QUEUE, claimed.ids[0].decode(), WORKER, claimed.now_ms)
    added = AddedSteps(holder, headers={}, backend="", passed_by_later=lambda: "")
    for number in range(steps):
        added.add_many(noop, [((7, number), {})] * AT_ONCE)
    added.send()


def _count_end(size: int) -> int:
    """The instructions of Redis for all that it does when the last job of a step ends, in a copy of the server."""
    with PrivateRedis() as server:
        _use(server)



def _table(costs: dict[int, Costs]) -> str:
    names = {name for each in costs.values() for name in each.ms}
    lines = [f"{'':20}" + "".join(f"{size:>30,} jobs" for size in costs)]
    lines.append(f"{'':20}" + f"{'calls':>8}{'median':>9}{'p99':>9}{'worst':>9}" * len(costs))
    for name in sorted(names, key=lambda name: -max(max(each.ms[name], default=0.0) for each in costs.values())):
        lines.append(f"{name:20}" + "".join(_cells(sorted(each.ms[name])) for each in costs.values()))
    return "\n".join(lines)


def _cells(ms: list[float]) -> str:
    if not ms:
        return f"{'':35}"
    return f"{len(ms):>8,}" + "".join(f"{ms[min(int(len(ms) * part), len(ms) - 1)]:9.3f}" for part in (0.5, 0.99, 1))


if __name__ == "__main__":
    sys.exit(main())
