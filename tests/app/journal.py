"""A log file of what jobs did, which survives crashes: each line is one write."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.line_files import whole_lines

FILE = "RTQ_TEST_JOURNAL"


class Entry(NamedTuple):
    """One line."""

    at: float  # seconds, time.monotonic(): the same for all processes of a machine
    pid: int
    word: str
    name: str


def write(word, name):
    """Add a line; no other process can come between."""
    line = f"{time.monotonic_ns()} {os.getpid()} {word} {name}\n"
    file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def folder():
    """Where jobs and tests leave each other signs."""
    return Path(os.environ[FILE]).parent


def read(path):
    """All lines, in order, but for one that is being written."""
    lines = (line.split(" ", 3) for line in whole_lines(Path(path)))
    return [Entry(int(at) / 1e9, int(pid), word, name) for at, pid, word, name in lines]
