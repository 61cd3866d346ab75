"""Numbers that jobs leave for whoever measures them, in memory that both map: no round trip, a fraction of a µs."""

from __future__ import annotations

import mmap
import os
from functools import lru_cache
from pathlib import Path

VARIABLE = "RTQ_BENCH_NOTES"  # of the environment: the path of the file
SLOTS = 4096


def make_notes(path: Path) -> memoryview:
    """A new file full of zeros; workers that are started from now on write into it."""
    path.write_bytes(bytes(8 * SLOTS))
    os.environ[VARIABLE] = str(path)
    notes.cache_clear()
    return notes()


@lru_cache(maxsize=1)
def notes() -> memoryview:
    """The slots, each an unsigned number of 64 bits."""
    with Path(os.environ[VARIABLE]).open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
