"""What supervisors store about their workers, for the admin and rtq."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.redis.commands import Argument, Command

WorkerInfo = Mapping[str, Argument]
_FORGOTTEN_MS = 60_000  # after the end of a worker
_KEPT_MS = 3_600_000  # after the last update; of a worker that was lost, people want to know where it ran


def worker_info_commands(keys: Keys, workers: Mapping[str, WorkerInfo]) -> Iterator[Command]:
    """Store the info of workers, which expires, and an index of their names, which saves readers a round trip.

    The index uses the clock of this machine, because no script is involved. If that clock is wrong by more than an
    hour, other workers may be missing from the index until their next heartbeat.
    """
    now_ms = _now_ms()
    for name, info in workers.items():
        # kept_ms and the time that is left to the key tell readers when the worker was last seen.
        yield ("HSET", keys.worker(name), "kept_ms", _KEPT_MS, *(value for pair in info.items() for value in pair))
        yield ("PEXPIRE", keys.worker(name), _KEPT_MS)
    if workers:
        yield ("ZADD", keys.workers, *(argument for name in workers for argument in (now_ms, name)))
        yield ("ZREMRANGEBYSCORE", keys.workers, "-inf", now_ms - _KEPT_MS)


def forget_info_commands(keys: Keys, worker: str) -> Iterator[Command]:
    """Forget the info of a worker that is no more: soon, because a page that was shown before may send it a command.

    A process that takes a new name has the same supervisor.
    """
    yield ("PEXPIRE", keys.worker(worker), _FORGOTTEN_MS)
    yield ("ZREM", keys.workers, worker)


def recent_workers(keys: Keys, seconds: float) -> Command:
    """Read the names of workers whose info was stored within so many seconds, the latest first."""
    return ("ZREVRANGEBYSCORE", keys.workers, "+inf", _now_ms() - round(1000 * seconds))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
