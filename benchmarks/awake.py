"""Keeps the cores awake: python -m benchmarks.awake CORE spins on that core, whenever nothing else wants it.

An idle core of a virtual machine halts, and takes 50 to 100 µs to come back. On a machine of its own it takes less.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # any other process goes first
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass
