"""What a Cluster costs beside a single server: python -m benchmarks.cluster

The same calls go to a server and to the only master of a Cluster, which has no replica, in turn. Callgrind counts the
instructions of Redis from the arrival of a command to its reply, without those of the kernel; the rest is CPU time.
Needs valgrind, and takes some minutes.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import processes
from benchmarks.instructions import callgrind, counting

CALLS = 50  # in a row
SIZES = (1, 64)  # jobs in a call
ROUNDS = {"instructions": 5, "CPU": 60, "bytes": 2}  # hash tables have random seeds, and CPU time varies
QUEUE, WORKER = "default", "w1"
BODY = '{"task":"benchmarks.jobs.noop","args":[7,42]}'

Figures = dict[str, tuple[list[float], list[float]]]  # of the server and of the Cluster, by what was done
Meter = Callable[[Any], AbstractContextManager[list[float]]]  # of a server; adds its figure to the list at the end


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings"
    import django

    django.setup()
    with (
        tempfile.TemporaryDirectory() as name,
        callgrind(folder := Path(name), "readQueryFromClient"),
        servers() as slow,
    ):
        executed = measure(slow, ROUNDS["instructions"], lambda server: counting(server.pid, folder))
    with servers() as fast:
        redis = measure(fast, ROUNDS["CPU"], lambda server: cpu_seconds(server.pid))
        python = measure(fast, ROUNDS["CPU"], lambda server: cpu_seconds(os.getpid()))
        size = measure(fast, ROUNDS["bytes"], bytes_received)
    row = "{:24}{:>16}{:>16}{:>8}{:>8}{:>8}{:>8}".format
    print(row("", "instructions", "in a Cluster", "ratio", "Redis", "Python", "bytes"))
    for what, figures in executed.items():
        before, after = (median(each) / CALLS for each in figures)
        of_redis, of_python = (median(b / a for a, b in zip(*cpu[what], strict=True)) for cpu in (redis, python))
        less, more = (median(each) / CALLS for each in size[what])
        ratios = (f"{ratio:.3f}" for ratio in (after / before, of_redis, of_python))
        print(row(what, f"{before:,.0f}", f"{after:,.0f}", *ratios, f"{more - less:+.0f}"))


@contextmanager
def servers() -> Iterator[list[tuple[Any, Any]]]:
    """A server and the master of a Cluster, each with its broker."""
    from django_rtq.core.broker.worker_broker import WorkerBroker
    from django_rtq.core.conf.config import Config
    from testproject.redis_server import PrivateRedis
    from tests.support.redis_cluster import PrivateCluster

    with PrivateRedis() as server, PrivateCluster(masters=1) as cluster:
        sources = (server, server.url), (cluster.servers[0], {"cluster": cluster.addresses})
        found = [(each, WorkerBroker(Config(redis=source, socket_timeout=60.0))) for each, source in sources]
        yield found
        for _, broker in found:
            broker.close()


def measure(places: list[tuple[Any, Any]], rounds: int, meter: Meter) -> Figures:
    """The figures of each round but the first, in which connections are made and scripts are loaded."""
    figures: Figures = defaultdict(lambda: ([], []))
    for number in range(rounds + 1):
        for works in zip(*(phases(broker) for _, broker in places), strict=True):
            for place, ((what, act), (server, broker)) in enumerate(zip(works, places, strict=True)):
                broker.redis.execute([("EVAL", "collectgarbage()", 0)])  # else some calls pay for the garbage of others
                with meter(server) as measured:
                    act()
                if number:
                    figures[what][place].append(sum(measured))
    return figures


def phases(broker: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is done, and how: jobs are enqueued, then claimed and finished as an ordinary worker does."""
    from django_rtq.core.broker.settlement import Settlement
    from tests.support.jobs import new_job, settlement

    broker.redis.execute([("FLUSHALL",)])
    broker.sign_on([QUEUE], WORKER)
    for size in SIZES:

        def enqueue(size: int = size) -> None:
            for _ in range(CALLS):
                # Made right before they are sent: a job that is older than a second takes a script other ways.
                broker.enqueue(QUEUE, [new_job(client=f"c{n % 10}", body=BODY) for n in range(size)])

        def claim(size: int = size) -> None:
            finished = Settlement()
            for _ in range(CALLS):
                (found,) = broker.claim(WORKER, [QUEUE], size, settlements={QUEUE: finished}).claimed
                jobs = [new_job()._replace(id=job_id.decode()) for job_id in found.ids]
                finished = settlement("ack", *jobs, outcome="", keep_ms=0)
            broker.settle(WORKER, QUEUE, finished)

        yield f"enqueue {size}", enqueue
        yield f"claim and finish {size}", claim


@contextmanager
def cpu_seconds(pid: int) -> Iterator[list[float]]:
    """Of a process."""
    figures: list[float] = []
    began = processes.cpu_seconds([pid])
    yield figures
    figures.append(processes.cpu_seconds([pid]) - began)


@contextmanager
def bytes_received(server: Any) -> Iterator[list[float]]:
    """By a server."""
    figures: list[float] = []
    began = _received(server)
    yield figures
    figures.append(_received(server) - began)


def _received(server: Any) -> int:
    import redis

    with redis.Redis(port=server.port, protocol=2) as client:
        return int(client.info("stats")["total_net_input_bytes"])


if __name__ == "__main__":
    main()
