"""The clients whose jobs have lately crashed processes of this worker: they step aside while others have jobs (D128).

A process that dies costs the time of a fork, which others must not pay again and again. So after a crash no process
claims further jobs of that client for a moment, which doubles while the crashes continue; and until it has not crashed
for a while, few processes do. None of this holds while nobody else has jobs: then its own jobs do not wait.

The supervisor writes, and its processes read it before each claim, in memory that they share. Each process has a list
of its own, too, of clients whose jobs have run into time limits there: such a job costs others the time of its limit.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

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
    """Shared by a supervisor and its processes. Create it before the first fork."""

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
