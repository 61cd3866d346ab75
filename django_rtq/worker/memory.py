"""How much memory a process has."""

from __future__ import annotations

import os
from pathlib import Path


def memory_bytes(pid: int | str = "self") -> int | None:
    """The resident memory of a process; None where the system does not tell (it is not Linux, or it is gone)."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
