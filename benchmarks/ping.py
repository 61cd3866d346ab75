"""Measures the longest reply time of PING: python -m benchmarks.ping PORT FILE writes it to FILE, in ms."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import redis


def main(port: int, file: Path) -> None:
    """Run until terminated."""
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
