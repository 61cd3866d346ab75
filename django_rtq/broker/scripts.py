"""The Lua scripts, and how one is called.

The header of a file is its signature: which files it ``uses``, and which keys of the queue it wants, in order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import resources

import hiredis

from django_rtq.broker.keys import QueueKeys

Argument = bytes | str | int | float
# What redis-py packs with in the end, a third of the way later.
_pack: Callable[[tuple[Argument, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]


class PackedCall(bytes):
    """A call of a script, in the form in which it is sent."""

    script: Script


Command = tuple[Argument, ...] | PackedCall

_USES = re.compile(r"^-- uses: (.*)$", re.MULTILINE)
_KEY = re.compile(r"^-- KEYS\[\d+\] (\w+)(?: +(\+ worker)\b)?", re.MULTILINE)


class Script:
    """One verb: the text that Redis runs, and the keys that it names."""

    def __init__(self, name: str) -> None:
        self.name = name
        body = _read(name)
        uses = _USES.search(body)
        self.text = "\n".join([*(_read(part) for part in (uses[1].split() if uses else ())), body])
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode()
        self._key_names = [
            "running_of" if of_any_worker else "running" if name == "running" else name
            for name, of_any_worker in _KEY.findall(body)
        ]
        self._heads: dict[bytes, tuple[Argument, ...]] = {}
        self._packed_heads: dict[bytes, tuple[int, bytes]] = {}

    @cached_property
    def is_of_a_worker(self) -> bool:
        """Whether it wants the processing list of one worker."""
        return "running" in self._key_names

    def call(self, keys: QueueKeys, arguments: Iterable[Argument], *, worker: str = "") -> Command:
        """The command that runs this script on one queue."""
        return (*self.head(keys, worker=worker), *arguments)

    def call_many(self, queues: Sequence[QueueKeys], arguments: Iterable[Argument], *, worker: str = "") -> Command:
        """The command that runs this script on several queues that share a server."""
        groups = [key for keys in queues for key in self.head(keys, worker=worker)[3:]]
        return (b"EVALSHA", self.sha, len(groups), *groups, *arguments)

    def head(self, keys: QueueKeys, *, worker: str = "") -> tuple[Argument, ...]:
        """What all calls on a queue begin with: the script and its keys."""
        if self.is_of_a_worker:
            return self._head(keys, worker)
        head = self._heads.get(keys.jobs)
        if head is None:
            head = self._heads[keys.jobs] = self._head(keys, worker)
        return head

    def packed_call(self, keys: QueueKeys, arguments: tuple[Argument, ...]) -> PackedCall:
        """A call of a script of no worker whose microseconds count: the keys are packed once for all calls."""
        packed_head = self._packed_heads.get(keys.jobs)
        if packed_head is None:
            head = self.head(keys)
            packed_head = self._packed_heads[keys.jobs] = len(head), _without_count(_pack(head))
        size, start = packed_head
        packed = PackedCall(b"*%d\r\n%b%b" % (size + len(arguments), start, _without_count(_pack(arguments))))
        packed.script = self
        return packed

    def _head(self, keys: QueueKeys, worker: str) -> tuple[Argument, ...]:
        wanted = [keys.running(worker) if name == "running" else getattr(keys, name) for name in self._key_names]
        return (b"EVALSHA", self.sha, len(wanted), *wanted)


def _read(name: str) -> str:
    return (resources.files("django_rtq.broker") / "lua" / f"{name}.lua").read_text()


def _names() -> list[str]:
    files = (resources.files("django_rtq.broker") / "lua").iterdir()
    return sorted(f.name[:-4] for f in files if f.name.endswith(".lua") and not f.name.startswith("_"))


def pack(command: Command) -> bytes:
    """A command in the form in which it is sent."""
    return command if isinstance(command, PackedCall) else _pack(command)


def script_of(command: Command) -> Script:
    """The script that a command calls."""
    return command.script if isinstance(command, PackedCall) else BY_SHA[command[1]]  # type: ignore[index]


def _without_count(packed: bytes) -> bytes:
    """RESP begins an array with the number of its items: "*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\na\\r\\n"."""
    return packed[packed.index(b"\n") + 1 :]


SCRIPTS = {name: Script(name) for name in _names()}
BY_SHA = {script.sha: script for script in SCRIPTS.values()}
