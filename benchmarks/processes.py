"""Children, CPU time and memory of processes, read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """The live child processes."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent(path) == pid]


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time so far, in steps of 10 ms per process. A process that has exited counts as 0."""
    ticks = 0
    for pid in pids:
        try:
            stat = _stat(Path(f"/proc/{pid}"))
        except OSError:
            continue
        ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb(pids: Iterable[int], what: str) -> float:
    """The sum of Pss or Rss."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def _parent(process: Path) -> int:
    try:
        return int(_stat(process)[1])
    except OSError:
        return 0  # it has exited meanwhile


def _stat(process: Path) -> list[str]:
    """/proc/<pid>/stat from its third field on. (The second is a name that may contain anything.)"""
    return (process / "stat").read_text().rpartition(")")[2].split()
