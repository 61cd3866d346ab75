"""Resident memory of a process."""

from __future__ import annotations

import os
from pathlib import Path


def memory_bytes(pid: int | str = "self") -> int | None:
    """The resident memory of a process, in bytes. None: the system is not Linux, or the process is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
