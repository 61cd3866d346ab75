"""Periodic jobs in Redis: schedules made in the admin, which schedules are disabled, and what each queue has started.

The database is the source of truth for schedules made in the admin. Redis holds a copy, so that schedulers need no
database: one hash, read again only when its version changes. The version is read along with other commands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.messages import NewJob
from django_rtq.core.broker.redis.client import RedisClient, as_dict, clock_ms
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS

_VERSION, _ROW, _SWITCH = b"version", "row:", "switch:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedules:
    """The copy in Redis at one moment."""

    version: bytes = b""  # b"": nothing is stored
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> row of the database
    #: name -> "off", or "on" and a nonce that differs each time that the schedule is enabled
    switches: Mapping[str, str] = field(default_factory=dict)


class ScheduleState(NamedTuple):
    """What is stored of one schedule in the hash `schedules` of its queue."""

    last_slot_ms: int  # 0: it has started no job yet
    last_job: str  # "-": none yet
    definition: str  # digest of the definition under which slots were last counted
    began_ms: int  # since when slots of that definition count

    @classmethod
    def read(cls, text: bytes) -> ScheduleState:
        """Parse the text that the scripts write."""
        slot, job, definition, began = text.decode().split(" ")
        return cls(int(slot), job, definition, int(began))


class ScheduleStore:
    """Reads and changes what Redis stores of schedules. Any thread may use it."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.plan
        self._keys = keys
        #: Sent along with other commands. Pass the reply to set_version().
        self.version_command: Command = ("HGET", self._key, _VERSION)
        self.latest_version = b""  # the last version that this process has read; b"": none
        self.last_read = StoredSchedules()

    def set_version(self, version: bytes | None) -> None:
        """Remember the reply to version_command."""
        self.latest_version = version or b""

    # -- schedules made in the admin, and which schedules are disabled

    def read(self) -> StoredSchedules:
        """Read the whole copy."""
        flat = self._redis.execute_one(("HGETALL", self._key), resend=True)
        fields = as_dict(flat)
        version = fields.pop(_VERSION, b"")
        self.set_version(version)
        texts = {name.decode(): value.decode() for name, value in fields.items()}
        rows = {name[len(_ROW) :]: _parse_row(text) for name, text in texts.items() if name.startswith(_ROW)}
        switches = {name[len(_SWITCH) :]: text for name, text in texts.items() if name.startswith(_SWITCH)}
        self.last_read = StoredSchedules(version=version, rows=rows, switches=switches)
        return self.last_read

    def update(self, rows: Mapping[str, Mapping[str, Any] | None], *, wake: Iterable[str] = ()) -> None:
        """Store rows, delete those that are None, and wake a scheduler of each queue in `wake`."""
        deleted = [_ROW + name for name, row in rows.items() if row is None]
        stored = _row_fields({name: row for name, row in rows.items() if row is not None})
        commands: list[Command] = [("HDEL", self._key, *deleted)] if deleted else []
        self._write(commands, stored, wake)

    def set_enabled(self, name: str, *, enabled: bool, wake: Iterable[str] = ()) -> None:
        """Enable or disable a schedule that was declared in code or settings."""
        self._write([], {_SWITCH + name: f"on {os.urandom(8).hex()}" if enabled else "off"}, wake)

    def restore(self, lost: StoredSchedules) -> None:
        """Put back what Redis has lost. All processes that do so write the same, in one command."""
        switches = {_SWITCH + name: text for name, text in lost.switches.items()}
        self._write([], _row_fields(lost.rows) | switches, (), version=lost.version)

    def _write(
        self, commands: list[Command], fields: Mapping[str, str], wake: Iterable[str], *, version: bytes = b""
    ) -> None:
        # Version and fields in one command: a process that reads the new version reads the new fields too.
        flat = [text for pair in fields.items() for text in pair]
        commands.append(("HSET", self._key, *flat, _VERSION, version or os.urandom(8).hex()))
        commands += [("ZADD", self._keys.of(queue).due_signal, 0, "due") for queue in wake]
        self._redis.execute(commands, resend=True)

    # -- jobs that schedules start

    def begin(self, queue: str, name: str, definition: str, now_ms: int) -> bool:
        """Count the slots of a schedule from now on. False: another process has begun with this definition before."""
        command = SCRIPTS["begin_schedule"].call(self._keys.of(queue), (name, definition, now_ms))
        return bool(self._redis.execute_one(command, resend=True) == b"begun")

    def fire(self, queue: str, name: str, slot_ms: int, job: NewJob, *, may_overlap: bool = True) -> str:
        """Enqueue the job of one slot of a schedule.

        Returns "fired", or why not: "already", "overlap" (the last job is alive), "duplicate <id>" (that job holds the
        uniqueness lock), "unknown" (the schedule has not begun), "full ..." (max_waiting).
        """
        overlap = "allow" if may_overlap else "skip"
        command = SCRIPTS["fire_schedule"].call(self._keys.of(queue), (name, slot_ms, overlap, *job))
        return str(self._redis.execute_one(command, resend=True).decode())

    def states(self, queues: Sequence[str]) -> tuple[int, dict[str, dict[str, ScheduleState]]]:
        """The server's time in ms, and the states of the schedules of each queue, by name.

        Reads the version too, so that a scheduler does not start a job of a schedule that was changed meanwhile.
        """
        reads: list[Command] = [("HGETALL", self._keys.of(queue).schedules) for queue in queues]
        time, version, *replies = self._redis.execute([("TIME",), self.version_command, *reads], resend=True)
        self.set_version(version)
        states = {
            queue: {name.decode(): ScheduleState.read(state) for name, state in as_dict(flat).items()}
            for queue, flat in zip(queues, replies, strict=True)
        }
        return clock_ms(time), states

    def forget(self, queue: str, names: Sequence[str]) -> None:
        """Delete the states of schedules. A schedule that is declared again starts from the beginning."""
        self._redis.execute_one(("HDEL", self._keys.of(queue).schedules, *names), resend=True)


def _row_fields(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {_ROW + name: json.dumps(row) for name, row in rows.items()}


def _parse_row(text: str) -> Mapping[str, Any]:
    """What no version of this package wrote becomes an empty row, which schedulers report and do not run."""
    try:
        row = json.loads(text)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
