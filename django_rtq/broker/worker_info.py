"""What supervisors write down about their workers, for people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from django_rtq.broker.keys import Keys
from django_rtq.broker.scripts import Argument, Command

Note = Mapping[str, Argument]
_FORGOTTEN_MS = 3_600_000  # a worker that was not noted for so long leaves the index


def note_commands(keys: Keys, notes: Mapping[str, Note], kept_ms: int) -> Iterator[Command]:
    """Write these notes, which expire, and an index of them: it spares who reads them a round trip.

    The index goes by the clock of this machine, as no script is involved. One that is wrong by more than an hour
    may remove others from it, until they are noted again.
    """
    now_ms = time.time_ns() // 1_000_000
    for name, note in notes.items():
        # What is left of kept_ms tells when the worker was seen last.
        yield ("HSET", keys.worker(name), "kept_ms", kept_ms, *(value for pair in note.items() for value in pair))
        yield ("PEXPIRE", keys.worker(name), kept_ms)
        yield ("ZADD", keys.workers, now_ms, name)
    if notes:
        yield ("ZREMRANGEBYSCORE", keys.workers, "-inf", now_ms - _FORGOTTEN_MS)
