"""The memory that a child shares with its supervisor.

The child notes in it what it has claimed and how far that is (entries.py). When the child dies, the supervisor tells
Redis what is over, counts a crash for what was running, and gives back the rest (G2, G5). There is no lock: each field
has one writer.

    0    name of the worker    1 byte of length, then text
    64   jobs done             unsigned, 8 bytes
    72   last claim            time.monotonic() of the last answer to a claim, double
    80   sign of life          time.monotonic(), double; infinity: the child is leaving
    105  quiet                 1: claim nothing; written by the supervisor
    88, 96, 104, 106 and on    see entries.py
"""

from __future__ import annotations

import math
import struct
import time

from django_rtq.worker.shared_entries import COUNT, NAMED, NUMBER, Entries

_NAME, _DONE, _CLAIMED, _ALIVE, _QUIET = 0, 64, 72, 80, 105
_NOTES, _TIME = struct.Struct("Qd"), struct.Struct("d")
MAX_NAME_BYTES = 63


class SharedState(Entries):
    """Shared memory for one child with some slots; make it before the fork."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.slots = slots
        self.made_at = time.monotonic()

    # -- written by the child

    def set_name(self, worker: str) -> None:
        """The child takes this name. Before it signs on, so that its lease is renewed from the start."""
        name = worker.encode()
        self.clear()  # what is over was done under another name
        self.set_alive(time.monotonic())
        self._memory[_NAME : _NAME + 1 + len(name)] = bytes([len(name)]) + name
        self._count += 1
        COUNT.pack_into(self._memory, NUMBER, self._count)
        COUNT.pack_into(self._memory, NAMED, self._count)

    def set_alive(self, now: float) -> None:
        """The child is not frozen. With infinity: it is leaving, and says no more."""
        if self.alive_at < math.inf:
            _TIME.pack_into(self._memory, _ALIVE, now)

    def record_claim(self, *, jobs_done: int, claimed_at: float) -> None:
        """Redis has answered a claim."""
        _NOTES.pack_into(self._memory, _DONE, jobs_done, claimed_at)
        self.set_alive(claimed_at)

    # -- written by the supervisor, and read by the child

    @property
    def is_quiet(self) -> bool:
        """Whether the child is to claim nothing."""
        return self._memory[_QUIET] == 1

    @is_quiet.setter
    def is_quiet(self, is_quiet: bool) -> None:
        self._memory[_QUIET] = int(is_quiet)

    # -- read by the supervisor

    @property
    def worker(self) -> str:
        """The name that the child goes by; "" before it has one."""
        length = self._memory[_NAME]
        return self._memory[_NAME + 1 : _NAME + 1 + length].decode()

    def last_claim(self) -> tuple[int, float]:
        """Jobs done, and the time.monotonic() of the last answer to a claim (0: none yet)."""
        done, claimed_at = _NOTES.unpack_from(self._memory, _DONE)
        return done, claimed_at

    @property
    def alive_at(self) -> float:
        """The time.monotonic() of the last sign of life; infinity: the child is leaving."""
        (alive_at,) = _TIME.unpack_from(self._memory, _ALIVE)
        return float(alive_at)
