"""The entries of the page that a child shares with its supervisor: one for each job that it has claimed.

An entry says whether its job waits, runs, or is over and how. A child may be killed between any two instructions, so
the status is written last: what belongs to it is there by then. There is no lock: each field has one writer.

    88   number                of the claim whose jobs have the entries, 8 bytes
    96   signed                the number when the child took its name, 8 bytes
    104  width                 of an id in the area of ids
    106  mark                  what the supervisor has taken away, written by it; see `Revoked`
    112  marked                the number that the mark is about, 8 bytes; written by the supervisor
    127  told                  1: Redis knows what is over of this claim, and has back what was given back
    128  entries               one array for each field: status, may run but once, length of the id, deadline (double;
                               0: none), outcome, wish (written by the supervisor: 1 byte of length and the id of the
                               job that is to stop), id
         texts                 two areas: results and errors of jobs that are over
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

NUMBER, NAMED, _WIDTH, _REVOKED, _REVOKED_NUMBER, _REPORTED, _STATUS = 88, 96, 104, 106, 112, 127, 128
_TIME, COUNT = struct.Struct("d"), struct.Struct("Q")
_OUTCOME = struct.Struct("=IIqII")  # where its text is, how long that is, milliseconds, is counted, attempt
_ACKED = struct.Struct("=IIq")  # the same, without what is not told of a job that succeeded
MAX_ID_BYTES = 255
MAX_BATCH = 128  # jobs of one claim, for a child with one slot
TEXTS = 1_179_648  # bytes of an area of texts: the longest result, and more; memory is taken when it is used
_FULL, _SHORT = TEXTS - 65_536, 2_000  # the rest is for short texts, when longer ones do not fit any more
TOMBSTONE_MS = 120_000  # an id without a result is kept so long, so that a late second enqueue is harmless (G8)

_NONE, _WAITING, _RUNNING, _RELEASED, _DONE = 0, 1, 2, 8, 9
ACKED, RETRIED, BURIED, EXPIRED, CANCELLED = range(3, 8)  # it is over; Redis may not know that yet
_ALL_WAITING = bytes([_WAITING]) * MAX_BATCH
FinishedEntries = Sequence[tuple[int, int]]


class Revoked(IntEnum):
    """What the supervisor has taken from a child."""

    NOTHING = 0
    REST = 1  # the jobs of this claim that have not started
    ALL = 2  # everything that the child has under its name and that has not started: it looked frozen


class Finished(NamedTuple):
    """A job that is over, and what Redis is to be told."""

    job_id: bytes
    verb: int  # ACKED and so on
    ms: int  # how long to keep the outcome, or the delay of a retry
    is_counted: bool
    attempt: int  # 0: whichever
    text: bytes  # what is kept as its outcome, or a line on its error


class Entries:
    """Shared memory with an entry for each claimed job.

    With one slot the jobs of a claim take the place of those before, which Redis has heard of by then: begin().
    With several slots each job gets an entry of its own until Redis knows how it ended: enter(), hand_over(), told().
    """

    def __init__(self, slots: int) -> None:
        # A job that is over has an entry while the next one runs in its slot.
        entries = self.entries = MAX_BATCH if slots == 1 else (2 * slots + 7) // 8 * 8
        self._once = _STATUS + entries
        self._length = self._once + entries
        self._deadline = self._length + entries
        self._outcome = self._deadline + _TIME.size * entries
        self._cancel_ids = self._outcome + _OUTCOME.size * entries
        self._ids = self._cancel_ids + (1 + MAX_ID_BYTES) * entries
        texts = self._ids + MAX_ID_BYTES * entries
        self._memory = mmap.mmap(-1, texts + 2 * TEXTS)
        self._memory[_WIDTH] = MAX_ID_BYTES
        # What follows is the child's own.
        self._clean = bytes(self._outcome - _REPORTED)
        self._count = 0
        self._claimed = 0  # jobs of the claim
        self._areas = (texts, texts + TEXTS)
        self._area = 0
        self._text_at, self._full_at = texts, texts + _FULL
        self._is_concurrent = slots > 1
        self._free = list(range(entries - 1, -1, -1))
        self._over: list[tuple[int, int]] = []  # entry and area of what is over, and not on its way to Redis
        self._area_users = [0, 0]  # how many that are over, and that Redis may not know of, have their text there

    # -- written by the child

    def clear(self) -> None:
        """Of a claim nothing is left to tell."""
        if not self._is_concurrent:
            self._memory[_REPORTED : self._outcome] = self._clean

    def start_batch(self, job_ids: Sequence[bytes]) -> None:
        """These jobs were claimed, and take the place of those before. None of them runs yet."""
        count = self._claimed = len(job_ids)
        try:
            lengths = bytes(map(len, job_ids))
        except ValueError:  # a job with a longer id never starts
            job_ids = [job_id if len(job_id) <= MAX_ID_BYTES else b"" for job_id in job_ids]
            lengths = bytes(map(len, job_ids))
        width = max(lengths, default=0)
        if min(lengths, default=0) != width:
            job_ids = [job_id.ljust(width) for job_id in job_ids]
        memory = self._memory
        memory[_REPORTED : self._outcome] = self._clean
        memory[_WIDTH] = width
        memory[self._length : self._length + count] = lengths
        memory[self._ids : self._ids + count * width] = b"".join(job_ids)
        self._count += 1
        COUNT.pack_into(memory, NUMBER, self._count)
        memory[_STATUS : _STATUS + count] = _ALL_WAITING[:count]
        self._text_at = self._areas[0]

    def add_entry(self, job_id: bytes) -> int:
        """This job was claimed, and gets an entry of its own: returns which."""
        entry, memory = self._free.pop(), self._memory
        memory[self._once + entry] = 0
        self.set_deadline(0.0, entry)
        length = len(job_id) if len(job_id) <= MAX_ID_BYTES else 0
        at = self._ids + MAX_ID_BYTES * entry
        memory[at : at + length] = job_id[:length]
        memory[self._length + entry] = length
        memory[_STATUS + entry] = _WAITING
        return entry

    def start(self, entry: int) -> bool:
        """The job runs from now on. False: it was taken away, and must not run."""
        memory = self._memory
        memory[_STATUS + entry] = _RUNNING
        # Only now: the supervisor first writes the mark, and then looks what has not started.
        if memory[_REVOKED] and self.revoked is not Revoked.NOTHING:
            self.remove_entry(entry)
            return False
        return True

    def set_runs_once(self, entry: int) -> None:
        """The job may run but once: it is not given back when it is cut short."""
        self._memory[self._once + entry] = 1

    def set_deadline(self, deadline: float, entry: int) -> None:
        """Kill this child when the job is still running at that time.monotonic()."""
        _TIME.pack_into(self._memory, self._deadline + _TIME.size * entry, deadline)

    def finish(
        self, entry: int, verb: int, ms: int, text: bytes = b"", *, is_counted: bool = True, attempt: int = 0
    ) -> bool:
        """The job is over. Returns False, and writes nothing, when there is no room for the text: try a shorter one.

        One thread at a time. What is counted, and the attempt, are not kept of a job that succeeded.
        """
        memory, at = self._memory, self._text_at
        size = len(text)
        end = at + size
        if end > self._full_at and (size > _SHORT or end > self._full_at - _FULL + TEXTS):
            return False
        memory[at:end] = text
        if verb == ACKED:
            _ACKED.pack_into(memory, self._outcome + 24 * entry, at, size, ms)
        else:
            _OUTCOME.pack_into(memory, self._outcome + 24 * entry, at, size, ms, is_counted, attempt)
        self._text_at = end
        memory[_STATUS + entry] = verb
        if self._is_concurrent:
            self._over.append((entry, self._area))
            self._area_users[self._area] += 1
        return True

    def finish_without_result(self, entry: int) -> None:
        """The job has succeeded, and nothing is kept but its id."""
        self._memory[_STATUS + entry] = _DONE
        if self._is_concurrent:
            self._over.append((entry, self._area))
            self._area_users[self._area] += 1

    def remove_entry(self, entry: int) -> None:
        """The job is not this child's any more."""
        self._memory[_STATUS + entry] = _NONE
        if self._is_concurrent:
            self._free.append(entry)

    def release_from(self, entry: int) -> None:
        """The jobs of the claim from this one on are to be given back."""
        count = self._claimed - entry
        self._memory[_STATUS + entry : _STATUS + self._claimed] = bytes([_RELEASED]) * count

    def mark_reported(self) -> None:
        """Redis knows what is over of this claim, and has back what was given back."""
        self._memory[_REPORTED] = 1

    def take_finished(self) -> FinishedEntries:
        """What is over by now is on its way to Redis. The next texts go to the other area, if that is free."""
        over, self._over = self._over, []
        if over and not self._area_users[1 - self._area]:
            self._area = 1 - self._area
            self._text_at = self._areas[self._area]
            self._full_at = self._text_at + _FULL
        return over

    def confirm_reported(self, over: FinishedEntries) -> None:
        """Redis knows how these ended."""
        for entry, area in over:
            self._area_users[area] -= 1
            self.remove_entry(entry)

    def put_back(self, over: FinishedEntries) -> None:
        """They are still to be told."""
        self._over = [*over, *self._over]

    # -- written by the supervisor, and read by the child

    @property
    def revoked(self) -> Revoked:
        """What was taken from the child as it is now; what was taken from it before it claimed anew does not count."""
        memory = self._memory
        mark, marked = Revoked(memory[_REVOKED]), self._count_at(_REVOKED_NUMBER)
        is_meant = marked >= self._count_at(NAMED) if mark is Revoked.ALL else marked == self.claim_number
        return mark if is_meant else Revoked.NOTHING

    @property
    def has_revocation(self) -> bool:
        """Whether anything was taken, perhaps long ago."""
        return self._memory[_REVOKED] != Revoked.NOTHING

    def revoke(self, mark: Revoked, number: int = 0) -> None:
        """Take what has not started from the child. Then wait a moment, and look what that is."""
        if mark is not Revoked.NOTHING and self.revoked is mark:
            return  # it was never without it since
        self._memory[_REVOKED] = Revoked.NOTHING
        COUNT.pack_into(self._memory, _REVOKED_NUMBER, number)
        self._memory[_REVOKED] = mark

    def request_cancel(self, job_id: str) -> None:
        """That job is to stop, if it runs."""
        name = job_id.encode()
        for entry in self._entries(_RUNNING):
            if self._id_of(entry) == name and not self.is_cancel_requested(name, entry):
                at = self._cancel_ids + (1 + MAX_ID_BYTES) * entry
                self._memory[at] = 0  # the length last: while it is 0 the rest is not believed
                self._memory[at + 1 : at + 1 + len(name)] = name
                self._memory[at] = len(name)

    def cancel_requests(self) -> list[bytes]:
        """The jobs that run and are to stop. A wish that came too late names another job than runs there now."""
        running = [(entry, self._id_of(entry)) for entry in self._entries(_RUNNING)]
        return [job_id for entry, job_id in running if self.is_cancel_requested(job_id, entry)]

    def is_cancel_requested(self, job_id: bytes, entry: int) -> bool:
        """Whether that job, which has this entry, is to stop."""
        at = self._cancel_ids + (1 + MAX_ID_BYTES) * entry
        return self._memory[at] > 0 and self._memory[at + 1 : at + 1 + self._memory[at]] == job_id

    # -- read by the supervisor

    @property
    def claim_number(self) -> int:
        """It grows with each claim."""
        return self._count_at(NUMBER)

    @property
    def is_reported(self) -> bool:
        """Whether Redis knows all of this claim but what runs."""
        return self._memory[_REPORTED] == 1

    def waiting(self) -> list[str]:
        """The jobs that were claimed and have not started."""
        return self._names(sorted([*self._entries(_WAITING), *self._entries(_RELEASED)]))

    def running(self) -> list[str]:
        """The jobs that were running."""
        return self._names(self._entries(_RUNNING))

    def running_once(self) -> list[str]:
        """Of those, the ones that may run but once."""
        return self._names([entry for entry in self._entries(_RUNNING) if self._memory[self._once + entry]])

    def overdue(self, now: float) -> list[str]:
        """The jobs that should have been over by now."""
        return self._names([entry for entry in self._entries(_RUNNING) if 0 < self._deadline_of(entry) <= now])

    def finished(self) -> list[Finished]:
        """The jobs that are over. Redis knows some of them already."""
        found = [Finished(self._id_of(entry), ACKED, TOMBSTONE_MS, True, 0, b"") for entry in self._entries(_DONE)]
        for verb in range(ACKED, CANCELLED + 1):
            for entry in self._entries(verb):
                outcome = _OUTCOME.unpack_from(self._memory, self._outcome + _OUTCOME.size * entry)
                at, length, ms, is_counted, attempt = outcome if verb != ACKED else (*outcome[:3], True, 0)
                text = self._memory[at : at + length]
                found.append(Finished(self._id_of(entry), verb, ms, bool(is_counted), attempt, text))
        return found

    def _entries(self, status: int) -> list[int]:
        statuses, sought = self._memory[_STATUS : self._once], bytes([status])
        found, entry = [], statuses.find(sought)
        while entry >= 0:
            found.append(entry)
            entry = statuses.find(sought, entry + 1)
        return found

    def _names(self, entries: Sequence[int]) -> list[str]:
        return [name for entry in entries if (name := self._id_of(entry).decode(errors="replace"))]

    def _id_of(self, entry: int) -> bytes:
        at = self._ids + self._memory[_WIDTH] * entry
        return self._memory[at : at + self._memory[self._length + entry]]

    def _deadline_of(self, entry: int) -> float:
        (deadline,) = _TIME.unpack_from(self._memory, self._deadline + _TIME.size * entry)
        return float(deadline)

    def _count_at(self, place: int) -> int:
        (count,) = COUNT.unpack_from(self._memory, place)
        return int(count)
