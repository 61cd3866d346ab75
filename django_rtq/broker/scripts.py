"""The Lua scripts, and how one is called.

The header of a file is its signature: which files it ``uses``, and which keys of the queue it wants, in order. A script
has them from ``named()``, which is made here of the header.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import resources

import hiredis

from django_rtq.broker.keys import QueueKeys

AT_ONCE = 500  # of one's own jobs in a call (rule 6); Lua's unpack takes some 8,000 values

Argument = bytes | str | int | float
Command = tuple[Argument, ...] | bytes  # bytes: in the form in which it is sent

# What redis-py packs with in the end, a third of the way later.
_pack: Callable[[tuple[Argument, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]
_USES = re.compile(r"^-- uses: (.*)$", re.MULTILINE)
_KEY = re.compile(r"^-- KEYS\[\d+\] (\w+)(?: +(\+ worker)\b)?", re.MULTILINE)
# Written out, because a table that grows from key to key is moved five times on its way.
_NAMED = """
local function named(first)
  local keys, n = KEYS, (first or 1) - 1
  return {{ {fields} }}, n + {next}
end
"""


class Script:
    """One verb: the text that Redis runs, and the keys that it names."""

    def __init__(self, name: str) -> None:
        self.name = name
        body = _read(name)
        uses = _USES.search(body)
        keys = _KEY.findall(body)
        parts = [_read(part) for part in (uses[1].split() if uses else ())]
        self.text = "\n".join([_named([name for name, _ in keys]), *parts, body])
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode()
        self._key_names = ["running_of" if of_any_worker else name for name, of_any_worker in keys]
        self._heads: dict[bytes, tuple[Argument, ...]] = {}
        self._packed_heads: dict[bytes, tuple[int, str]] = {}

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

    def packed_call(self, keys: QueueKeys, arguments: Sequence[str | int]) -> Command:
        """call() for a script of no worker and few arguments: the keys are packed once for all calls.

        For plain text this is so much faster than the packer in C that it shows in the time that a delay() takes.
        """
        packed_head = self._packed_heads.get(keys.jobs)
        if packed_head is None:
            head = self.head(keys)
            packed_head = self._packed_heads[keys.jobs] = len(head), _pack(head).decode().partition("\n")[2]
        size, start = packed_head
        text = "".join([f"${len(value)}\r\n{value}\r\n" for value in map(str, arguments)])
        if not text.isascii():  # where a character is not a byte
            return self.call(keys, arguments)
        return f"*{size + len(arguments)}\r\n{start}{text}".encode()

    def _head(self, keys: QueueKeys, worker: str) -> tuple[Argument, ...]:
        wanted = [keys.running(worker) if name == "running" else getattr(keys, name) for name in self._key_names]
        return (b"EVALSHA", self.sha, len(wanted), *wanted)


def _named(names: Sequence[str]) -> str:
    """What gives the keys of a queue by their names, and where those of the next queue begin."""
    fields = ", ".join(f"{name} = keys[n + {place}]" for place, name in enumerate(names, 1))
    return _NAMED.format(fields=fields, next=len(names) + 1)


def _read(name: str) -> str:
    return (resources.files("django_rtq.broker") / "lua" / f"{name}.lua").read_text()


def _names() -> list[str]:
    files = (resources.files("django_rtq.broker") / "lua").iterdir()
    return sorted(f.name[:-4] for f in files if f.name.endswith(".lua") and not f.name.startswith("_"))


def pack(command: Command) -> bytes:
    """A command in the form in which it is sent."""
    return command if isinstance(command, bytes) else _pack(command)


def script_of(command: Command) -> Script:
    """The script that a command calls."""
    # *<items> $7 EVALSHA $40 <sha> …
    return BY_SHA[command.split(b"\r\n", 5)[4] if isinstance(command, bytes) else command[1]]  # type: ignore[index]


SCRIPTS = {name: Script(name) for name in _names()}
BY_SHA = {script.sha: script for script in SCRIPTS.values()}
