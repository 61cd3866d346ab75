"""Children, CPU time and memory of processes, read from Linux."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

_CPU_TIME = 2  # CPUCLOCK_SCHED: user and system time of all threads


def children_of(pid: int) -> list[int]:
    """The live child processes."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent(path) == pid]


def family_of(pid: int) -> list[int]:
    """The process, its children and their descendants."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        children.setdefault(_parent(path), []).append(int(path.name))
    found = [pid]
    for member in found:  # which grows
        found += children.get(member, [])
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time so far, exact to a µs. A process that has exited counts as 0."""
    return sum(map(_cpu_seconds, pids))


def memory_mb(pids: Iterable[int], what: str) -> float:
    """The sum of Pss or Rss."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def _cpu_seconds(pid: int) -> float:
    """By the clock that Linux has for each process: /proc/<pid>/stat has steps of 10 ms only."""
    try:
        return time.clock_gettime((~pid << 3) | _CPU_TIME)
    except OSError:
        return 0.0


def _parent(process: Path) -> int:
    try:
        return int(_stat(process)[1])
    except OSError:
        return 0  # it has exited meanwhile


def _stat(process: Path) -> list[str]:
    """/proc/<pid>/stat from its third field on. (The second is a name that may contain anything.)"""
    return (process / "stat").read_text().rpartition(")")[2].split()
