"""Numbers and marks that jobs write for the benchmark, in memory mapped by both: no round trip, a fraction of a µs.

Needs only the standard library: the tasks of other queues use it too.
"""

from __future__ import annotations

import mmap
import os
from functools import lru_cache
from pathlib import Path

VARIABLE = "RTQ_BENCH_COUNTERS"  # environment variable with the path of the file
SLOTS = 4096
MARKS = 1_000_000  # jobs of one measurement


def make_counters(path: Path) -> memoryview:
    """Create files of zeros. Workers started from now on write into them."""
    path.write_bytes(bytes(8 * SLOTS))
    path.with_suffix(".marks").write_bytes(bytes(MARKS))
    os.environ[VARIABLE] = str(path)
    counters.cache_clear()
    marks.cache_clear()
    return counters()


@lru_cache(maxsize=1)
def counters() -> memoryview:
    """The slots, each an unsigned 64-bit number."""
    with Path(os.environ[VARIABLE]).open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


@lru_cache(maxsize=1)
def marks() -> mmap.mmap:
    """A byte for each job, which the job sets to 1 when it is done."""
    with Path(os.environ[VARIABLE]).with_suffix(".marks").open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def marked(jobs: int) -> int:
    """How many of the first jobs are done."""
    return marks()[:jobs].count(b"\1")


def clear_counters() -> None:
    """Set all slots and marks to 0."""
    counters().cast("B")[:] = bytes(8 * SLOTS)
    marks()[:] = bytes(MARKS)
