"""Another client of the same server: python -m benchmarks.pinger PORT FILE notes the longest answer to PING, in ms."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import redis


def main(port: int, file: Path) -> None:
    """Until it is ended."""
    client, longest = redis.Redis(port=port), 0.0
    client.ping()  # connects
    while True:
        started = time.perf_counter()
        client.ping()
        spent = (time.perf_counter() - started) * 1000
        if spent > longest:
            longest = spent
            file.write_text(f"{longest:.3f}")
        time.sleep(0.0005)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
