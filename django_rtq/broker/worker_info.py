"""What supervisors store about their workers, for the admin and rtq_status."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.commands import Argument, Command

WorkerInfo = Mapping[str, Argument]
_INDEX_MS = 3_600_000  # a worker that was not updated for so long leaves the index


def worker_info_commands(keys: Keys, workers: Mapping[str, WorkerInfo], kept_ms: int) -> Iterator[Command]:
    """Store the info of workers, which expires, and an index of their names, which saves readers a round trip.

    The index uses the clock of this machine, because no script is involved. If that clock is wrong by more than an
    hour, other workers may be missing from the index until their next heartbeat.
    """
    now_ms = time.time_ns() // 1_000_000
    for name, info in workers.items():
        # kept_ms and the time that is left to the key tell readers when the worker was last seen.
        yield ("HSET", keys.worker(name), "kept_ms", kept_ms, *(value for pair in info.items() for value in pair))
        yield ("PEXPIRE", keys.worker(name), kept_ms)
        yield ("ZADD", keys.workers, now_ms, name)
    if workers:
        yield ("ZREMRANGEBYSCORE", keys.workers, "-inf", now_ms - _INDEX_MS)
