"""The receiver for the baseline of latency: blocks in BLPOP and records when each value arrives."""

from __future__ import annotations

import os
import time

import redis

from benchmarks.counters import counters

KEY = "baseline"
READY = "baseline:ready"


def main() -> None:
    """Run until terminated."""
    client = redis.Redis.from_url(os.environ["RTQ_BENCH_REDIS"])
    arrived = counters()
    client.set(READY, 1)
    while True:
        popped = client.blpop([KEY], timeout=5)
        now = time.monotonic_ns()
        if popped:
            arrived[int(popped[1])] = now


if __name__ == "__main__":
    main()
