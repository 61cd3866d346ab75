"""The other end of the raw floor of latency: a process that waits in BLPOP and notes when it woke up."""

from __future__ import annotations

import os
import time

import redis

from benchmarks.notes import notes

KEY = "floor"
READY = "floor:ready"


def main() -> None:
    """Until it is ended."""
    client = redis.Redis.from_url(os.environ["RTQ_BENCH_REDIS"])
    moments = notes()
    client.set(READY, 1)
    while True:
        popped = client.blpop([KEY], timeout=5)
        now = time.monotonic_ns()
        if popped:
            moments[int(popped[1])] = now


if __name__ == "__main__":
    main()
