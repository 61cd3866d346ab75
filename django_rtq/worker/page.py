"""The page of memory that a child shares with its supervisor.

The child notes what it starts and finishes; when it dies, the supervisor reads there which jobs were running:
those are the guilty ones of a crash, the others of a batch are not (G5). No lock: each field has one writer,
and the supervisor believes it only after the child is dead, except for deadlines, where a late look does no harm.

    0    name of the worker    1 byte of length, then text
    64   jobs done             unsigned, 8 bytes
    72   last claim            time.monotonic() of the last answer to a claim, double
    80   quiet                 1: claim nothing; written by the supervisor
    256  slots                 256 bytes each: 1 byte of length, id; at 119 whether the job may run but once;
                               at 120 the deadline on time.monotonic(), 0: none; at 128 1 byte of length and the id
                               of a job that is to stop, written by the supervisor
"""

from __future__ import annotations

import mmap
import struct
import time

_NAME, _DONE, _CLAIMED, _QUIET, _SLOTS, _SLOT, _ONCE, _DEADLINE, _WISH = 0, 64, 72, 80, 256, 256, 119, 120, 128
_NOTES, _TIME = struct.Struct("Qd"), struct.Struct("d")
_CLEAN = bytes(_WISH - _ONCE)
LONGEST_NAME, LONGEST_ID = 63, 118


class Page:
    """Shared memory for one child with some slots; make it before the fork."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.made_at = time.monotonic()
        self._memory = mmap.mmap(-1, _SLOTS + slots * _SLOT)

    # -- written by the child

    def sign(self, worker: str) -> None:
        """The child takes this name. Before it signs on, so that its lease is renewed from the start."""
        name = worker.encode()
        self._memory[_NAME : _NAME + 1 + len(name)] = bytes([len(name)]) + name

    def start(self, job_id: bytes, slot: int = 0) -> None:
        """A job runs from now on."""
        at = _SLOTS + slot * _SLOT
        # The length last: while it is 0 nothing else of the slot is believed.
        self._memory[at + _ONCE : at + _WISH] = _CLEAN  # the deadline of the job before is not ours
        self._memory[at + 1 : at + 1 + len(job_id)] = job_id
        self._memory[at] = len(job_id)

    def note_once(self, slot: int = 0) -> None:
        """The job in the slot may run but once: it is not given back when it is cut short."""
        self._memory[_SLOTS + slot * _SLOT + _ONCE] = 1

    def limit(self, deadline: float, slot: int = 0) -> None:
        """Kill this child when the job in the slot is still running at that time.monotonic()."""
        _TIME.pack_into(self._memory, _SLOTS + slot * _SLOT + _DEADLINE, deadline)

    def finish(self, slot: int = 0) -> None:
        """The job in the slot is over."""
        self._memory[_SLOTS + slot * _SLOT] = 0

    def note(self, *, jobs_done: int, claimed_at: float) -> None:
        """Redis has answered a claim."""
        _NOTES.pack_into(self._memory, _DONE, jobs_done, claimed_at)

    # -- written by the supervisor, and read by the child

    @property
    def is_quiet(self) -> bool:
        """Whether the child is to claim nothing."""
        return self._memory[_QUIET] == 1

    @is_quiet.setter
    def is_quiet(self, is_quiet: bool) -> None:
        self._memory[_QUIET] = int(is_quiet)

    def ask_to_stop(self, job_id: str) -> None:
        """That job is to stop, if it is what runs in a slot."""
        name = job_id.encode()
        for at in range(_SLOTS, len(self._memory), _SLOT):
            if self._id_at(at) == name and self._id_at(at + _WISH) != name:
                self._memory[at + _WISH] = 0  # the length last: while it is 0 the rest is not believed
                self._memory[at + _WISH + 1 : at + _WISH + 1 + len(name)] = name
                self._memory[at + _WISH] = len(name)

    def to_stop(self) -> list[bytes]:
        """The jobs that run and are to stop. A wish that came too late names another job than runs there now."""
        at_slots = range(_SLOTS, len(self._memory), _SLOT)
        return [self._id_at(at) for at in at_slots if self._memory[at] and self._id_at(at) == self._id_at(at + _WISH)]

    def is_to_stop(self, job_id: bytes, slot: int = 0) -> bool:
        """Whether that job in that slot is to stop."""
        return self._id_at(_SLOTS + slot * _SLOT + _WISH) == job_id

    def _id_at(self, at: int) -> bytes:
        return bytes(self._memory[at + 1 : at + 1 + self._memory[at]])

    # -- read by the supervisor

    @property
    def worker(self) -> str:
        """The name that the child goes by; "" before it has one."""
        length = self._memory[_NAME]
        return bytes(self._memory[_NAME + 1 : _NAME + 1 + length]).decode()

    def notes(self) -> tuple[int, float]:
        """Jobs done, and the time.monotonic() of the last answer to a claim (0: none yet)."""
        done, claimed_at = _NOTES.unpack_from(self._memory, _DONE)
        return done, claimed_at

    def started(self) -> list[str]:
        """The jobs that were running."""
        return [job_id for job_id, _, _ in self._occupied()]

    def started_once(self) -> list[str]:
        """Of those, the ones that may run but once."""
        return [job_id for job_id, is_once, _ in self._occupied() if is_once]

    def overdue(self, now: float) -> list[str]:
        """The jobs that should have been over by now."""
        return [job_id for job_id, _, deadline in self._occupied() if 0 < deadline <= now]

    def _occupied(self) -> list[tuple[str, bool, float]]:
        found = []
        for at in range(_SLOTS, len(self._memory), _SLOT):
            length = self._memory[at]
            if length:
                (deadline,) = _TIME.unpack_from(self._memory, at + _DEADLINE)
                job_id = bytes(self._memory[at + 1 : at + 1 + length]).decode(errors="replace")
                found.append((job_id, bool(self._memory[at + _ONCE]), deadline))
        return found
