"""The plan: schedules that people made, as Redis has them, and which schedules are off.

The database has the truth about the rows. This is the copy that schedulers go by, because they need no database: one
hash, read anew only when its version is another one. The version travels with what schedulers ask anyway.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django_rtq.broker.keys import Keys
from django_rtq.broker.redis.client import RedisClient, as_dict
from django_rtq.broker.scripts import Command

_VERSION, _ROW, _SWITCH = b"version", "row:", "switch:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedules:
    """What the plan said at a moment."""

    version: bytes = b""  # b"": there is no plan
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> as the database has it
    switches: Mapping[str, str] = field(
        default_factory=dict
    )  # name -> "off", or "on" and what tells this time from others


class ScheduleStore:
    """The plan of a broker. Any thread may use it."""

    def __init__(self, redis: RedisClient, keys: Keys) -> None:
        self._redis = redis
        self._key = keys.plan
        self._keys = keys
        #: What goes along with other questions. The answer is for notice().
        self.ask_for_version: Command = ("HGET", self._key, _VERSION)
        self.latest = b""  # the version that this process has heard of last; b"": of none

    def notice(self, version: bytes | None) -> None:
        """Somebody asked for the version, and this was the answer."""
        self.latest = version or b""

    def read(self) -> StoredSchedules:
        """All of it."""
        flat = self._redis.execute_one(("HGETALL", self._key), resend=True)
        found = as_dict(flat)
        version = found.pop(_VERSION, b"")
        self.notice(version)
        texts = {name.decode(): value.decode() for name, value in found.items()}
        rows = {name[len(_ROW) :]: _as_row(text) for name, text in texts.items() if name.startswith(_ROW)}
        switches = {name[len(_SWITCH) :]: text for name, text in texts.items() if name.startswith(_SWITCH)}
        return StoredSchedules(version=version, rows=rows, switches=switches)

    def change(self, rows: Mapping[str, Mapping[str, Any] | None], *, wake: Iterable[str] = ()) -> None:
        """Put rows, or take those out that are None, and wake a scheduler of these queues."""
        gone = [_ROW + name for name, row in rows.items() if row is None]
        put = _as_fields({name: row for name, row in rows.items() if row is not None})
        commands: list[Command] = [("HDEL", self._key, *gone)] if gone else []
        self._write(commands, put, wake)

    def switch(self, name: str, *, on: bool, wake: Iterable[str] = ()) -> None:
        """Let a schedule that no row has made fire, or fire no more."""
        self._write([], {_SWITCH + name: _write_switch(on=on)}, wake)

    def restore(self, lost: StoredSchedules) -> None:
        """Put back what Redis has lost. All who do so write the same, in one command."""
        switches = {_SWITCH + name: text for name, text in lost.switches.items()}
        self._write([], _as_fields(lost.rows) | switches, (), version=lost.version)

    def _write(
        self, commands: list[Command], fields: Mapping[str, str], wake: Iterable[str], *, version: bytes = b""
    ) -> None:
        # The version with the fields, in one command: who sees it sees them.
        flat = [text for pair in fields.items() for text in pair]
        commands.append(("HSET", self._key, *flat, _VERSION, version or os.urandom(8).hex()))
        commands += [("ZADD", self._keys.of(queue).due_signal, 0, "due") for queue in wake]
        self._redis.execute(commands, resend=True)


def _write_switch(*, on: bool) -> str:
    return f"on {os.urandom(8).hex()}" if on else "off"


def read_switch(text: str) -> tuple[bool, str]:
    """Whether a schedule is enabled, and a token that is new each time it is enabled. "": never switched."""
    word, _, since = text.partition(" ")
    return word != "off", since


def _as_fields(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {_ROW + name: json.dumps(row) for name, row in rows.items()}


def _as_row(text: str) -> Mapping[str, Any]:
    """What no version of this package wrote is a row without a task: told, and not obeyed."""
    try:
        row = json.loads(text)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


class ScheduleState(NamedTuple):
    """The value of one name in the hash `schedules`."""

    last_slot_ms: int  # 0: none was fired yet
    last_job: str  # "-": none yet
    definition: str  # its digest, of whoever began to count last
    began_ms: int  # since when slots of that definition count

    @classmethod
    def read(cls, text: bytes) -> ScheduleState:
        """From the text that the scripts write."""
        slot, job, definition, began = text.decode().split(" ")
        return cls(int(slot), job, definition, int(began))


def read_states(flat: Sequence[bytes]) -> dict[str, ScheduleState]:
    """By name, from the answer to HGETALL."""
    return {name.decode(): ScheduleState.read(state) for name, state in as_dict(flat).items()}
