"""The memory that a worker process shares with its supervisor, with an entry for each job that the process has claimed.

When the process dies, the supervisor settles the jobs that are over, counts a crash for those that were running, and
gives back the rest (G2, G5; D54). An entry has the status of its job: waiting, running, or over with its outcome. A
process may be killed between any two instructions, so the status is written last, after the data that belongs to it.
There is no lock: each field has one writer.

    0    name of the worker    1 byte of length, then text
    64   jobs done             unsigned, 8 bytes
    72   last claim            time.monotonic() of the last answer to a claim, or of the last look at one that blocks
    80   sign of life          time.monotonic(), double; infinity: the process is exiting
    88   claim number          of the claim whose jobs have the entries, 8 bytes
    96   named                 the claim number when the process took its name, 8 bytes
    104  width                 of an id in the area of ids
    105  quiet                 a flag; written by the supervisor
    106  revoked               what the supervisor has revoked, written by it; see `Revoked`
    107  tries crashing        a flag; written by the supervisor
    108  dozing                a flag; written by the supervisor
    112  revoked number        the claim number that the revocation is about, 8 bytes; written by the supervisor
    120  lease renewed         time.monotonic(), double; written by the supervisor
    134  resting               a flag
    135  reported              1: Redis has all outcomes of this claim, and the jobs that were released
    136  entries               one array for each field: status, may it run again (see _ONCE), length of the id,
                               deadline (double; 0: none), outcome, cancel request (written by the supervisor: 1 byte of
                               length and the id of the job), id
         texts                 two areas: results and errors of jobs that are over
         counts                which of the two areas below is valid; the length and the id of a job whose outcome is
                               on its way to Redis: when Redis has it, the other area is; then the areas, each 4 bytes
                               of length and what was counted of runs and not sent, see make_metrics()
"""

from __future__ import annotations

import json
import math
import mmap
import struct
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from django_rtq.core.broker.settlement import Report
from django_rtq.core.worker.outcome import ACKED, VERBS

_NAME, _JOBS_DONE, _ALIVE, _NUMBER, _NAMED, _WIDTH, _REVOKED = 0, 64, 80, 88, 96, 104, 106
_REVOKED_NUMBER, _RENEWED, _REPORTED, _STATUS = 112, 120, 135, 136
_LENGTH, _TIME, _COUNT, _CLAIM = struct.Struct("I"), struct.Struct("d"), struct.Struct("Q"), struct.Struct("Qd")
_OUTCOME = struct.Struct("=IIqII")  # offset and length of the text, milliseconds, is counted, attempt
_ACKED = struct.Struct("=IIq")  # the same, without the fields that a succeeded job does not need
MAX_NAME_BYTES, MAX_ID_BYTES = 63, 255
MAX_COUNTS = 65_536  # bytes; more are lost with the process
MAX_BATCH = 128  # jobs of one claim, for a process with one slot
TEXTS = 1_179_648  # bytes of a text area: more than the longest result; the memory is allocated when it is used
_FULL, _SHORT = TEXTS - 65_536, 2_000  # the rest of the area is for short texts
# How long an id without a result is kept, so that an enqueue that is sent again is harmless (G8).
TOMBSTONE_MS = 120_000

_NONE, _WAITING, _RUNNING, _RELEASED, _DONE = range(5)
# It is over; Redis may not have the outcome yet.
_STATUS_OF = {verb: status for status, verb in enumerate(VERBS, start=_DONE + 1)}
_ACKED_STATUS = _STATUS_OF[ACKED]
# May a job run again that was cut short? 0: yes, and that counts a crash. _ONCE: no. _COMMITTED: it has to, and that
# counts nothing, because the next run finds what it has committed.
_ONCE, _COMMITTED = 1, 2
_RUNNING_BYTE = bytes([_RUNNING])
_ALL_WAITING = bytes([_WAITING]) * MAX_BATCH
FinishedEntries = Sequence[tuple[int, int]]


FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 0.5
CALM_SECONDS = 10.0  # after so long without a crash a client is like any other
MAX_CLIENTS = 64  # the first of them to crash is forgotten first
_SIZE = 131_072
_HEAD = struct.Struct("QdI")  # number of the text, odd while it is written; until when it matters; its length

ClientOfQueue = tuple[str, str]  # queue and client


@dataclass(slots=True)
class _Crashes:
    """The crashes of a client in a row. Times are of time.monotonic()."""

    pause_seconds: float = 0.0
    paused_until: float = 0.0
    forgotten_at: float = 0.0


class CrashingClients:
    """The clients whose jobs have lately crashed processes of this worker: they step aside while others have jobs
    (D128). Shared by a supervisor and its processes. Create it before the first fork.

    A process that dies costs the time of a fork, which others must not pay again and again. So after a crash no process
    claims further jobs of that client for a moment, which doubles while the crashes continue; and until it has not
    crashed for a while, few processes do. None of this holds while nobody else has jobs: then its own jobs do not wait.

    The supervisor writes, and its processes read it before each claim. Each process has a list of its own, too, of
    clients whose jobs have run into time limits there: such a job costs others the time of its limit.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._crashes: dict[ClientOfQueue, _Crashes] = {}  # of the supervisor
        self._written = self._number_read = 0  # numbers of texts
        self._read: Sequence[tuple[ClientOfQueue, float, float]] = ()

    def note_crash(self, clients: Collection[ClientOfQueue]) -> None:
        """Jobs of these clients ran in a process that crashed. For one thread of the supervisor.

        If there are several, most of them have nothing to do with it: no pause is doubled.
        """
        now = time.monotonic()
        for client in clients:
            crashes = self._crashes.pop(client, None)
            if crashes is None or now >= crashes.forgotten_at:
                crashes = _Crashes(FIRST_PAUSE_SECONDS)
            elif len(clients) == 1 and now >= crashes.paused_until:  # else it was claimed before the last crash
                crashes.pause_seconds = min(2 * crashes.pause_seconds, MAX_PAUSE_SECONDS)
            crashes.paused_until = now + crashes.pause_seconds
            crashes.forgotten_at = crashes.paused_until + CALM_SECONDS
            self._crashes[client] = crashes  # the last one
        self._write()

    def _write(self) -> None:
        newest = list(self._crashes.items())[-MAX_CLIENTS:]
        self._crashes = dict(newest)
        rows = [(client, crashes.paused_until, crashes.forgotten_at) for client, crashes in newest]
        text = json.dumps(rows, ensure_ascii=False).encode()
        until = max((crashes.forgotten_at for _, crashes in newest), default=-math.inf)
        _HEAD.pack_into(self._memory, 0, self._written + 1, until, 0)
        self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        self._written += 2
        _HEAD.pack_into(self._memory, 0, self._written, until, len(text))

    def aside(self, *, is_trial: bool) -> list[ClientOfQueue]:
        """The clients of which no jobs are to be claimed while others have some, the first that may again first.

        `is_trial`: for a process that claims theirs after the pause.
        """
        number, until, length = _HEAD.unpack_from(self._memory)
        now = time.monotonic()
        if now >= until:
            return []
        if number != self._number_read and number % 2 == 0:
            text = self._memory[_HEAD.size : _HEAD.size + length]
            if _HEAD.unpack_from(self._memory)[0] == number:  # else it was written meanwhile
                self._number_read = number
                self._read = [((queue, name), *times) for (queue, name), *times in json.loads(text)]
        ends = sorted((paused if is_trial else forgotten, client) for client, paused, forgotten in self._read)
        return [client for end, client in ends if end > now]


class Revoked(IntEnum):
    """Which jobs of a process the supervisor has revoked."""

    NOTHING = 0
    REST = 1  # the jobs of this claim that have not started
    ALL = 2  # all jobs under its name that have not started: the process looked frozen


class _Flag:
    """A byte that is 1 or 0."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, shared: SharedState, owner: object = None) -> bool:
        return shared._memory[self._place] == 1

    def __set__(self, shared: SharedState, value: bool) -> None:
        shared._memory[self._place] = int(value)


class SharedState:
    """Shared memory of one process. Create it before the fork.

    `together`: how many jobs may run in one slot, because one call of their function gets them.

    With one slot the jobs of a claim replace those of the claim before, which are settled by then: start_batch().
    With several slots each job has its own entry until Redis has its outcome: add_entry(), take_finished(),
    confirm_reported().
    """

    is_quiet = _Flag(105)  # the process is to claim nothing
    tries_crashing = _Flag(107)  # it is one of the few that claim jobs of crashing clients while others have jobs
    #: The supervisor looks seldom, because no job runs: it wants to be woken when some are claimed.
    is_supervisor_dozing = _Flag(108)
    #: The process claims nothing, because it is to be quiet: no claim of it is under way.
    is_resting = _Flag(134)

    def __init__(self, slots: int, crashing_clients: CrashingClients | None = None, *, together: int = 1) -> None:
        self.slots = slots
        self._crashing_clients = crashing_clients or CrashingClients()  # of all processes of the supervisor
        self._timeouts: CrashingClients | None = None  # the clients whose jobs ran into time limits in this process
        self.made_at = time.monotonic()
        # With several slots, as many jobs are claimed ahead, and a job that is over keeps its entry for a while.
        entries = self.entries = MAX_BATCH if slots == 1 else ((2 + 2 * together) * slots + 7) // 8 * 8
        self._once = _STATUS + entries
        self._length = self._once + entries
        self._deadline = self._length + entries
        self._outcome = self._deadline + _TIME.size * entries
        self._cancel_ids = self._outcome + _OUTCOME.size * entries
        self._ids = self._cancel_ids + (1 + MAX_ID_BYTES) * entries
        texts = self._ids + MAX_ID_BYTES * entries
        self._counts = texts + 2 * TEXTS
        first_area = self._counts + 2 + MAX_ID_BYTES
        self._counts_areas = (first_area, first_area + _LENGTH.size + MAX_COUNTS)
        self._memory = mmap.mmap(-1, self._counts + 2 + MAX_ID_BYTES + 2 * (_LENGTH.size + MAX_COUNTS))
        self._memory[_WIDTH] = MAX_ID_BYTES
        # The attributes below are used by the process only.
        self._clean = bytes(self._outcome - _REPORTED)
        self._count = 0
        self._claimed = 0  # jobs of the claim
        self._areas = (texts, texts + TEXTS)
        self._area = 0
        self._text_at, self._full_at = texts, texts + _FULL
        self._is_concurrent = slots > 1
        self._reserve = 2 * slots  # entries for jobs of other calls
        self._free = list(range(entries - 1, -1, -1))
        self._over: list[tuple[int, int]] = []  # entry and area of jobs that are over, and not on the way to Redis
        self._area_users = [0, 0]  # how many jobs that are over and not settled have their text in each area

    # -- written by the process

    def set_name(self, worker: str) -> None:
        """Set the worker name. Before signing on, so that the lease is renewed from the start."""
        name = worker.encode()
        if not self._is_concurrent:
            self._memory[_REPORTED : self._outcome] = self._clean  # its outcomes belong to another name
        self.set_alive(time.monotonic())
        self._memory[_NAME : _NAME + 1 + len(name)] = bytes([len(name)]) + name
        self.end_claim()
        _COUNT.pack_into(self._memory, _NAMED, self._count)

    def set_alive(self, now: float) -> None:
        """Show that the process is not frozen. Infinity: it is exiting, and gives no more signs of life."""
        if self.alive_at < math.inf:
            _TIME.pack_into(self._memory, _ALIVE, now)

    def record_claim(self, *, jobs_done: int, claimed_at: float) -> None:
        """Redis has replied to a claim, or a claim still blocks."""
        _CLAIM.pack_into(self._memory, _JOBS_DONE, jobs_done, claimed_at)
        self.set_alive(claimed_at)

    def start_batch(self, job_ids: Sequence[bytes]) -> None:
        """These jobs were claimed, and replace those of the claim before. All are waiting."""
        count = self._claimed = len(job_ids)
        try:
            lengths = bytes(map(len, job_ids))
        except ValueError:  # a job with a longer id is never started
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
        _COUNT.pack_into(memory, _NUMBER, self._count)
        memory[_STATUS : _STATUS + count] = _ALL_WAITING[:count]
        self._text_at = self._areas[0]

    def add_entry(self, job_id: bytes) -> int:
        """Add an entry for a job that was claimed. Returns its index."""
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
        """Mark the job as running. False: it was revoked, and must not run."""
        memory = self._memory
        memory[_STATUS + entry] = _RUNNING
        # After the status: the supervisor first writes the revocation, and then reads which jobs have not started.
        if memory[_REVOKED] and self.revoked is not Revoked.NOTHING:
            self.remove_entry(entry)
            return False
        return True

    def set_runs_once(self, entry: int) -> None:
        """The job must not run twice: it is not given back when it is cut short."""
        self._memory[self._once + entry] = _ONCE

    def set_committed(self, entry: int) -> None:
        """The job has committed with exactly_once: it cannot fail or crash any more."""
        self._memory[self._once + entry] = _COMMITTED

    def set_deadline(self, deadline: float, entry: int) -> None:
        """Kill this process if the job is still running at that time.monotonic()."""
        _TIME.pack_into(self._memory, self._deadline + _TIME.size * entry, deadline)

    def finish(
        self, entry: int, verb: str, ms: int, text: bytes = b"", *, is_counted: bool = True, attempt: int = 0
    ) -> bool:
        """Store the outcome of a job. Returns False, and writes nothing, if there is no room for the text.

        One thread at a time. `is_counted` and `attempt` are not stored for a job that succeeded.
        """
        memory, at = self._memory, self._text_at
        size = len(text)
        end = at + size
        if end > self._full_at and (size > _SHORT or end > self._full_at - _FULL + TEXTS):
            return False
        memory[at:end] = text
        if verb == ACKED:
            _ACKED.pack_into(memory, self._outcome + 24 * entry, at, size, ms)
            status = _ACKED_STATUS
        else:
            _OUTCOME.pack_into(memory, self._outcome + 24 * entry, at, size, ms, is_counted, attempt)
            status = _STATUS_OF[verb]
        self._text_at = end
        memory[_STATUS + entry] = status
        if self._is_concurrent:
            self._over.append((entry, self._area))
            self._area_users[self._area] += 1
        return True

    def finish_without_result(self, entry: int, *, runs_again: bool = False) -> None:
        """The job has succeeded, without a result to store. `runs_again`: if Redis does not hear of it from us."""
        self._memory[_STATUS + entry] = _RELEASED if runs_again else _DONE
        if self._is_concurrent:
            self._over.append((entry, self._area))
            self._area_users[self._area] += 1

    def remove_entry(self, entry: int) -> None:
        """Remove the job."""
        self._memory[_STATUS + entry] = _NONE
        if self._is_concurrent:
            self._free.append(entry)

    def end_claim(self) -> None:
        """With several slots: no jobs are waiting. A revocation of waiting jobs has no effect any more."""
        self._count += 1
        _COUNT.pack_into(self._memory, _NUMBER, self._count)

    def release_from(self, entry: int) -> None:
        """Mark the jobs of the claim from this index on as to be released."""
        count = self._claimed - entry
        self._memory[_STATUS + entry : _STATUS + self._claimed] = bytes([_RELEASED]) * count

    def mark_reported(self) -> None:
        """Redis has all outcomes of this claim, and the released jobs."""
        self._memory[_REPORTED] = 1

    def take_finished(self) -> FinishedEntries:
        """Take the jobs that are over, to send their outcomes. Further texts go to the other area, if that is free."""
        over, self._over = self._over, []
        if over and not self._area_users[1 - self._area]:
            self._area = 1 - self._area
            self._text_at = self._areas[self._area]
            self._full_at = self._text_at + _FULL
        return over

    def confirm_reported(self, over: FinishedEntries) -> None:
        """Redis has the outcomes of these: free their entries."""
        for entry, area in over:
            self._area_users[area] -= 1
            self.remove_entry(entry)

    def put_back(self, over: FinishedEntries) -> None:
        """Their outcomes could not be sent: keep them for the next time."""
        self._over = [*over, *self._over]

    def begin_counts(self, dump: bytes, job_id: bytes) -> None:
        """What was counted of runs, and not sent, as soon as Redis has the outcome of this job."""
        memory, at = self._memory, self._counts
        memory[at + 1] = 0
        area = self._counts_areas[1 - memory[at]]
        length = len(dump) if len(dump) <= MAX_COUNTS else 0
        _LENGTH.pack_into(memory, area, length)
        memory[area + _LENGTH.size : area + _LENGTH.size + length] = dump[:length]
        memory[at + 2 : at + 2 + len(job_id)] = job_id
        memory[at + 1] = len(job_id)

    def confirm_counts(self) -> None:
        """Redis has it."""
        self._memory[self._counts] = 1 - self._memory[self._counts]
        self._memory[self._counts + 1] = 0

    @property
    def room(self) -> int:
        """How many jobs may be claimed, to run with others: with several slots, beside those that have entries."""
        return max(0, len(self._free) - self._reserve) if self._is_concurrent else self.entries

    def clients_aside(self) -> list[ClientOfQueue]:
        """The clients of which it claims no jobs while others have some, in the order in which that ends."""
        is_trial = self.tries_crashing
        aside = self._crashing_clients.aside(is_trial=is_trial)
        return aside if self._timeouts is None else [*aside, *self._timeouts.aside(is_trial=is_trial)]

    def note_timeout(self, client: ClientOfQueue) -> None:
        """A job of this client has run into its time limit: here they step aside as if one had crashed the process."""
        if self._timeouts is None:
            self._timeouts = CrashingClients()
        self._timeouts.note_crash([client])

    # -- written by the supervisor, read by the process

    @property
    def renewed_at(self) -> float:
        """Since this time.monotonic() the lease has been valid, for one lease at least. 0: it was not renewed yet.
        Negative: it had expired by then, or the name had not signed on."""
        return self._time_at(_RENEWED)

    @renewed_at.setter
    def renewed_at(self, renewed_at: float) -> None:
        _TIME.pack_into(self._memory, _RENEWED, renewed_at)

    @property
    def revoked(self) -> Revoked:
        """What is revoked of the current claim or name. A revocation of an earlier one does not count."""
        memory = self._memory
        mark, marked = Revoked(memory[_REVOKED]), self._count_at(_REVOKED_NUMBER)
        is_meant = marked >= self._count_at(_NAMED) if mark is Revoked.ALL else marked == self.claim_number
        return mark if is_meant else Revoked.NOTHING

    @property
    def has_revocation(self) -> bool:
        """Whether there is a revocation, perhaps of an earlier claim."""
        return self._memory[_REVOKED] != Revoked.NOTHING

    def revoke(self, mark: Revoked, number: int = 0) -> None:
        """Revoke the jobs that have not started. Then wait a moment before reading which ones these are."""
        if mark is not Revoked.NOTHING and self.revoked is mark:
            return  # it is in effect already
        self._memory[_REVOKED] = Revoked.NOTHING
        _COUNT.pack_into(self._memory, _REVOKED_NUMBER, number)
        self._memory[_REVOKED] = mark

    def request_cancel(self, job_id: str) -> None:
        """Request the cancellation of that job, if it is running."""
        name = job_id.encode()
        for entry in self._entries(_RUNNING):
            if self._id_of(entry) == name and not self.is_cancel_requested(name, entry):
                at = self._cancel_ids + (1 + MAX_ID_BYTES) * entry
                self._memory[at] = 0  # the length is written last: 0 means that there is no request
                self._memory[at + 1 : at + 1 + len(name)] = name
                self._memory[at] = len(name)

    def cancel_requests(self) -> list[bytes]:
        """The running jobs that are to be cancelled. A late request has the id of an earlier job, and is ignored."""
        running = [(entry, self._id_of(entry)) for entry in self._entries(_RUNNING)]
        return [job_id for entry, job_id in running if self.is_cancel_requested(job_id, entry)]

    def is_cancel_requested(self, job_id: bytes, entry: int) -> bool:
        """Whether the job of this entry is to be cancelled."""
        at = self._cancel_ids + (1 + MAX_ID_BYTES) * entry
        return self._memory[at] > 0 and self._memory[at + 1 : at + 1 + self._memory[at]] == job_id

    # -- read by the supervisor

    @property
    def worker(self) -> str:
        """The worker name of the process; "" before it has one."""
        return self._memory[_NAME + 1 : _NAME + 1 + self._memory[_NAME]].decode()

    def last_claim(self) -> tuple[int, float]:
        """Jobs done, and the time.monotonic() of the last answer to a claim (0: none yet)."""
        done, claimed_at = _CLAIM.unpack_from(self._memory, _JOBS_DONE)
        return done, claimed_at

    @property
    def alive_at(self) -> float:
        """The time.monotonic() of the last sign of life; infinity: the process is exiting."""
        return self._time_at(_ALIVE)

    @property
    def claim_number(self) -> int:
        """The number of the claim; it grows with each claim."""
        return self._count_at(_NUMBER)

    @property
    def is_reported(self) -> bool:
        """Whether Redis has the outcomes of all jobs of this claim but the running one."""
        return self._memory[_REPORTED] == 1

    def waiting(self) -> list[str]:
        """The jobs that have not started."""
        return self._names(sorted([*self._entries(_WAITING), *self._entries(_RELEASED)]))

    @property
    def is_running(self) -> bool:
        """Whether a job is running. Takes less time than running()."""
        return self._memory.find(_RUNNING_BYTE, _STATUS, self._once) >= 0

    def running(self) -> list[str]:
        """The jobs that are running, or were when the process died."""
        return self._names(self._entries(_RUNNING))

    def running_once(self) -> list[str]:
        """Of those, the ones that must not run twice."""
        return self._names([entry for entry in self._entries(_RUNNING) if self._memory[self._once + entry] == _ONCE])

    def committed(self) -> list[str]:
        """Of those, the ones that have committed with exactly_once."""
        once = self._once
        return self._names([entry for entry in self._entries(_RUNNING) if self._memory[once + entry] == _COMMITTED])

    def overdue(self, now: float) -> list[str]:
        """The running jobs whose deadlines have passed."""
        running, first = self._entries(_RUNNING), self._deadline
        return self._names([entry for entry in running if 0 < self._time_at(first + _TIME.size * entry) <= now])

    def counts(self) -> tuple[bytes, bytes, bytes]:
        """What was counted of runs, and not sent: while Redis does not have the outcome of a job, and when it has; and
        the id of that job, b"" if there is none: then the former."""
        memory, at = self._memory, self._counts
        dumps = []
        for number in (memory[at], 1 - memory[at]):
            area = self._counts_areas[number]
            (length,) = _LENGTH.unpack_from(memory, area)
            dumps.append(memory[area + _LENGTH.size : area + _LENGTH.size + length])
        return dumps[0], dumps[1], memory[at + 2 : at + 2 + memory[at + 1]]

    def finished(self) -> list[Report]:
        """What became of the jobs that are over. Redis may have some of the outcomes already."""
        finished = [Report(ACKED, self._id_of(entry), TOMBSTONE_MS) for entry in self._entries(_DONE)]
        for verb, status in _STATUS_OF.items():
            for entry in self._entries(status):
                at, length, *outcome = _OUTCOME.unpack_from(self._memory, self._outcome + _OUTCOME.size * entry)
                ms, counted, attempt = outcome if verb != ACKED else (outcome[0], 1, 0)
                text = self._memory[at : at + length]
                finished.append(Report(verb, self._id_of(entry), ms, text, counted, attempt))
        return finished

    def _entries(self, status: int) -> list[int]:
        statuses, sought = self._memory[_STATUS : self._once], bytes([status])
        entries, entry = [], statuses.find(sought)
        while entry >= 0:
            entries.append(entry)
            entry = statuses.find(sought, entry + 1)
        return entries

    def _names(self, entries: Sequence[int]) -> list[str]:
        return [name for entry in entries if (name := self._id_of(entry).decode(errors="replace"))]

    def _id_of(self, entry: int) -> bytes:
        at = self._ids + self._memory[_WIDTH] * entry
        return self._memory[at : at + self._memory[self._length + entry]]

    def _time_at(self, place: int) -> float:
        (time_then,) = _TIME.unpack_from(self._memory, place)
        return float(time_then)

    def _count_at(self, place: int) -> int:
        (count,) = _COUNT.unpack_from(self._memory, place)
        return int(count)
