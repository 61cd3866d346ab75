"""The memory that a worker process shares with its supervisor.

The process writes which jobs it has claimed, and their status (shared_entries.py). When it dies, the supervisor settles
the jobs that are over, counts a crash for those that were running, and gives back the rest (G2, G5; D54). There is no
lock: each field has one writer.

    0    name of the worker    1 byte of length, then text
    64   jobs done             unsigned, 8 bytes
    72   last claim            time.monotonic() of the last answer to a claim, or of the last look at one that blocks
    80   sign of life          time.monotonic(), double; infinity: the process is exiting
    105  quiet                 1: claim nothing; written by the supervisor
    107  tries crashing        1: claim jobs of crashing clients after their pauses; written by the supervisor
    108  dozing                1: the supervisor wants to be woken when jobs are claimed; written by it
    134  resting               1: it claims nothing, because it is to be quiet; written by the process
    120  lease renewed         time.monotonic() just before the lease was renewed last, double; by the supervisor.
                               Negative: just before the supervisor heard that it had expired
    88, 96, 104, 106 and on    see shared_entries.py
"""

from __future__ import annotations

import math
import struct
import time

from django_rtq.core.worker.crashing_clients import ClientOfQueue, CrashingClients
from django_rtq.core.worker.shared_entries import COUNT, NAMED, NUMBER, Entries

_NAME, _DONE, _CLAIMED, _ALIVE, _QUIET, _TRIES, _DOZING, _RENEWED, _RESTING = 0, 64, 72, 80, 105, 107, 108, 120, 134
_NOTES, _TIME = struct.Struct("Qd"), struct.Struct("d")
MAX_NAME_BYTES = 63


class SharedState(Entries):
    """Shared memory of one process. Create it before the fork."""

    def __init__(self, slots: int, crashing_clients: CrashingClients | None = None, *, together: int = 1) -> None:
        super().__init__(slots, together)
        self.slots = slots
        self._crashing_clients = crashing_clients or CrashingClients()  # of all processes of the supervisor
        self._timeouts: CrashingClients | None = None  # the clients whose jobs ran into time limits in this process
        self.made_at = time.monotonic()

    # -- written by the process

    def set_name(self, worker: str) -> None:
        """Set the worker name. Before signing on, so that the lease is renewed from the start."""
        name = worker.encode()
        self.clear()  # its outcomes belong to another name
        self.set_alive(time.monotonic())
        self._memory[_NAME : _NAME + 1 + len(name)] = bytes([len(name)]) + name
        self._count += 1
        COUNT.pack_into(self._memory, NUMBER, self._count)
        COUNT.pack_into(self._memory, NAMED, self._count)

    def set_alive(self, now: float) -> None:
        """Show that the process is not frozen. Infinity: it is exiting, and gives no more signs of life."""
        if self.alive_at < math.inf:
            _TIME.pack_into(self._memory, _ALIVE, now)

    def record_claim(self, *, jobs_done: int, claimed_at: float) -> None:
        """Redis has replied to a claim, or a claim still blocks."""
        _NOTES.pack_into(self._memory, _DONE, jobs_done, claimed_at)
        self.set_alive(claimed_at)

    def set_resting(self, *, is_resting: bool) -> None:
        """Show whether the process claims nothing, because it is to be quiet: no claim of it is under way."""
        self._memory[_RESTING] = int(is_resting)

    # -- written by the supervisor, read by the process

    def clients_aside(self) -> list[ClientOfQueue]:
        """The clients of which it claims no jobs while others have some, in the order in which that ends."""
        is_trial = self._memory[_TRIES] == 1
        aside = self._crashing_clients.aside(is_trial=is_trial)
        return aside if self._timeouts is None else [*aside, *self._timeouts.aside(is_trial=is_trial)]

    def note_timeout(self, client: ClientOfQueue) -> None:
        """A job of this client has run into its time limit: here they step aside as if one had crashed the process."""
        if self._timeouts is None:
            self._timeouts = CrashingClients()
        self._timeouts.note_crash([client])

    def set_tries_crashing(self, *, tries_crashing: bool) -> None:
        """Say whether this process is one of the few that claim jobs of crashing clients while others have jobs."""
        self._memory[_TRIES] = int(tries_crashing)

    @property
    def is_quiet(self) -> bool:
        """Whether the process is to claim nothing."""
        return self._memory[_QUIET] == 1

    @is_quiet.setter
    def is_quiet(self, is_quiet: bool) -> None:
        self._memory[_QUIET] = int(is_quiet)

    @property
    def is_supervisor_dozing(self) -> bool:
        """Whether the supervisor looks seldom, because no job runs: it wants to be woken when some are claimed."""
        return self._memory[_DOZING] == 1

    @is_supervisor_dozing.setter
    def is_supervisor_dozing(self, is_dozing: bool) -> None:
        self._memory[_DOZING] = int(is_dozing)

    @property
    def renewed_at(self) -> float:
        """Since this time.monotonic() the lease has been valid, for one lease at least. 0: it was not renewed yet.
        Negative: it had expired by then, or the name had not signed on."""
        (renewed_at,) = _TIME.unpack_from(self._memory, _RENEWED)
        return float(renewed_at)

    @renewed_at.setter
    def renewed_at(self, renewed_at: float) -> None:
        _TIME.pack_into(self._memory, _RENEWED, renewed_at)

    # -- read by the supervisor

    @property
    def worker(self) -> str:
        """The worker name of the process; "" before it has one."""
        length = self._memory[_NAME]
        return self._memory[_NAME + 1 : _NAME + 1 + length].decode()

    @property
    def is_resting(self) -> bool:
        """Whether the process has taken notice that it is to be quiet."""
        return self._memory[_RESTING] == 1

    def last_claim(self) -> tuple[int, float]:
        """Jobs done, and the time.monotonic() of the last answer to a claim (0: none yet)."""
        done, claimed_at = _NOTES.unpack_from(self._memory, _DONE)
        return done, claimed_at

    @property
    def alive_at(self) -> float:
        """The time.monotonic() of the last sign of life; infinity: the process is exiting."""
        (alive_at,) = _TIME.unpack_from(self._memory, _ALIVE)
        return float(alive_at)
