"""The exit codes of rtq_worker, and of the processes that it forks."""

from __future__ import annotations

# of rtq_worker
EXIT_OK = 0
EXIT_CANNOT_START = 1  # its processes die before they claim anything
# A second signal: 128 and the number of the signal.

# of a process: the supervisor reads them
EXIT_DONE = 0  # told to stop, or a burst is over
EXIT_RECYCLED = 75  # it has run its share of jobs, or uses too much memory
EXIT_FAILED = 70  # an exception outside of any job
EXIT_FORKED = 70  # the copy of the process that a job made with fork() came back from the job
EXIT_OUT_OF_MEMORY = 137  # a MemoryError; the same code as after the OOM killer
