"""The Lua scripts, and how one is called.

The header of a file is its signature. ``-- uses:`` names the parts in lua/lib/ that it calls, which may use others.
``-- keys:`` names the keys of the queue that a script uses: see keys.py for their types and meaning. The script has
them from ``named()``, which is generated here from that line.

A call declares one key for each queue, its tag, and ``named()`` appends the names of the keys to it. All keys of a
queue have the tag in common, so it leads to their slot.

Redis creates the functions of a script in each call, which takes 0.1 µs for each. A part whose header says
``-- created when first called`` is wrapped into a function that creates those of the part. All these functions are in
one, so scripts that rarely need them pay for one.

A file is read when its script is called first; an upgrade in between is noticed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from textwrap import indent

from django_rtq.broker.keys import QUEUE_KEYS, QueueKeys
from django_rtq.broker.redis.commands import SCRIPTS_BY_SHA, Argument, Command, LuaScript
from django_rtq.broker.redis.speedups import TextCommand
from django_rtq.exceptions import BrokerRefused

AT_ONCE = 500  # most jobs of the caller in a call (rule 6); Lua's unpack takes some 8,000 values

_USES = re.compile(r"^-- uses: (.*)$", re.MULTILINE)
_KEYS = re.compile(r"^-- keys: (.*(?:\n--  .*)*)", re.MULTILINE)  # the next lines go on with two spaces
_DEFINITION = re.compile(
    r"^local (?:function \w+\(.*?^end|.*?)$", re.MULTILINE | re.DOTALL
)  # of a function or constants
_IS_LAZY = re.compile(r"^-- created when first called$", re.MULTILINE)
_LAZY_PART = """
local {part}_part
local function {part}_functions()
  if {part}_part then return {part}_part end
{definitions}
  {part}_part = {{ {fields} }}
  return {part}_part
end
"""
_LAZY = """
lazy = function(part)
  if not lazy_parts then
{parts}
    lazy_parts = {{ {fields} }}
  end
  return lazy_parts[part]()
end
"""
_NAMES = re.compile(r"local (?:function )?(\w+(?:, \w+)*)")
_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
# One constructor with all fields: a table that grows key by key is reallocated five times.
_NAMED = """
local function named(place)
  local tag = KEYS[place or 1]
  return {{ {fields} }}
end
"""


class Script:
    """One verb or query: the text that Redis runs, and the keys that it gets. Its file is read on first use."""

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self._folder = folder
        self._heads: dict[bytes, tuple[Argument, ...]] = {}
        self._text_commands: dict[bytes, TextCommand] = {}

    @cached_property
    def text(self) -> str:
        """What Redis runs: named(), what the script uses of the parts, and its own file.

        Raises BrokerRefused if the files are of another version than this process.
        """
        try:
            text = "\n".join([_named(self.key_names), _composed(self._source)])
            _check_version()
        except OSError as error:
            raise BrokerRefused(f"{error}. Was django_rtq upgraded? Restart this process.") from error
        return text

    @cached_property
    def sha(self) -> bytes:
        """The digest by which EVALSHA names the script."""
        sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode()
        SCRIPTS_BY_SHA[sha] = LuaScript(self.name, self.text)
        return sha

    @cached_property
    def key_names(self) -> list[str]:
        """The keys that it uses. Raises LookupError for one that keys.py does not know."""
        found = _KEYS.search(self._source)
        names = found[1].replace("\n--", " ").split() if found else []
        if unknown := [name for name in names if name not in QUEUE_KEYS and name != "running"]:
            raise LookupError(f"{self.name}.lua names keys that no queue has: {', '.join(unknown)}")
        return names

    @property
    def _source(self) -> str:
        return _read(self._folder, self.name)

    @cached_property
    def needs_worker(self) -> bool:
        """Whether it gets the processing list of one worker."""
        return "running" in self.key_names

    def call(self, keys: QueueKeys, arguments: Iterable[Argument], *, worker: str = "") -> Command:
        """The command that runs this script on one queue."""
        return (*self.head(keys, worker=worker), *arguments)

    def call_many(self, queues: Sequence[QueueKeys], arguments: Iterable[Argument]) -> Command:
        """The command that runs this script on several queues that share a server."""
        return (b"EVALSHA", self.sha, len(queues), *[keys.tag for keys in queues], *arguments)

    def head(self, keys: QueueKeys, *, worker: str = "") -> tuple[Argument, ...]:
        """The start of every call on a queue: the script, the queue's tag, and the processing list if it needs one."""
        if self.needs_worker:
            return self._head(keys, worker)
        head = self._heads.get(keys.tag)
        if head is None:
            head = self._heads[keys.tag] = self._head(keys, worker)
        return head

    def packed_call(self, keys: QueueKeys, arguments: Sequence[str | int]) -> Command:
        """call() for a script without a worker and with few arguments, packed faster: see TextCommand."""
        command = self._text_commands.get(keys.tag)
        if command is None:
            command = self._text_commands[keys.tag] = TextCommand(self.head(keys))
        return command.pack(arguments) or self.call(keys, arguments)

    def _head(self, keys: QueueKeys, worker: str) -> tuple[Argument, ...]:
        if self.needs_worker:
            return (b"EVALSHA", self.sha, 2, keys.tag, keys.running(worker))
        return (b"EVALSHA", self.sha, 1, keys.tag)


def _named(names: Sequence[str]) -> str:
    """Lua code of named(): the keys by name of the queue whose tag is the key at that place."""
    fields = [
        f'{name} = tag .. "{QUEUE_KEYS[name].name}"' if name in QUEUE_KEYS else f"{name} = KEYS[2]" for name in names
    ]
    return _NAMED.format(fields=", ".join(fields))


def _parts(source: str, found: dict[str, str] | None = None) -> dict[str, str]:
    """The parts that a file uses, each once and behind those that it uses itself: name -> text."""
    found = {} if found is None else found
    uses = _USES.search(source)
    for name in uses[1].split() if uses else ():
        if name not in found:
            part = _read("lib", name)
            _parts(part, found)
            found[name] = part
    return found


def _composed(source: str) -> str:
    """A script behind what it uses of its parts. Each call of a script creates its functions, so the others would cost
    time."""
    eager: list[str] = []
    shared: list[str] = []  # of other parts, and used only by the lazy ones
    lazy: dict[str, list[str]] = {}
    words, lazy_words = _words(source), set[str]()
    for part, part_text in reversed(_parts(source).items()):
        is_lazy = bool(_IS_LAZY.search(part_text))
        for definition in reversed(_DEFINITION.findall(part_text)):
            names = _names([definition])
            if not is_lazy and not words.isdisjoint(names):
                eager.insert(0, definition)
                words |= _words(definition)
            elif not words.isdisjoint(names) or not lazy_words.isdisjoint(names):
                (lazy.setdefault(part, []) if is_lazy else shared).insert(0, definition)
                lazy_words |= _words(definition)
    if not lazy:
        return "\n".join([*eager, source])
    texts = ["\n".join(eager), source, "\n".join(shared)]
    for part, definitions in lazy.items():
        texts = [_call_through(f'lazy("{part}")', definitions, text) for text in texts]
    return "\n".join(["local lazy, lazy_parts", texts[0], _lazy(texts[2], dict(reversed(lazy.items()))), texts[1]])


def _words(code: str) -> set[str]:
    """The names that this Lua code mentions, without those behind a dot."""
    return set(_WORD.findall(_COMMENT.sub("", code)))


def _lazy(shared: str, parts: Mapping[str, Sequence[str]]) -> str:
    """One function that creates those of all these parts: what Redis creates in each call."""
    text = shared
    for part, definitions in parts.items():
        inside = indent("\n".join(definitions), "  ")
        for other in parts.keys() - {part}:
            inside = _call_through(f"{other}_functions()", parts[other], inside)
        fields = ", ".join(f"{name} = {name}" for name in _names(definitions))
        text += _LAZY_PART.format(part=part, definitions=inside, fields=fields)
    return _LAZY.format(parts=indent(text, "    "), fields=", ".join(f"{part} = {part}_functions" for part in parts))


def _call_through(getter: str, definitions: Sequence[str], text: str) -> str:
    """This text with calls of these functions that get them from there."""
    return re.sub(rf"(?<![.\w])({'|'.join(_names(definitions))})\(", rf"{getter}.\1(", text)


def _names(definitions: Sequence[str]) -> list[str]:
    """The functions or constants that are defined there."""
    found = [_NAMES.match(definition) for definition in definitions]
    return [name for each in found if each for name in each[1].split(", ")]


@cache
def _read(folder: str, name: str) -> str:
    return (_LUA / folder / f"{name}.lua").read_text()


def _scripts_in(folder: str) -> dict[str, Script]:
    names = sorted(file.name.removesuffix(".lua") for file in (_LUA / folder).iterdir() if file.name.endswith(".lua"))
    return {name: Script(name, folder) for name in names}


def _check_version() -> None:
    """Raises BrokerRefused if an upgrade has replaced the package since this process started.

    Code and scripts of two versions may not agree on arguments. What was read before remains in use.
    """
    if _stamp_of_package() == _STAMP:
        return
    own = sys.modules["django_rtq"].__version__
    found = re.search(r'^__version__ = "(.*)"', _PACKAGE.read_text(), re.MULTILINE)
    if found and found[1] != own:
        raise BrokerRefused(
            f"django_rtq was upgraded from {own} to {found[1]} while this process was running. Restart it."
        )


def _stamp_of_package() -> int:
    try:
        return _PACKAGE.stat().st_mtime_ns
    except OSError:  # it has only compiled files, for instance
        return 0


def read_all() -> None:
    """Read every script now, for a process that runs for long: it must not read files of a later version."""
    for script in SCRIPTS.values():
        script.sha  # noqa: B018


_PACKAGE = Path(__file__).parents[1] / "__init__.py"
_STAMP = _stamp_of_package()
_LUA = resources.files("django_rtq.broker") / "lua"
SCRIPTS = _scripts_in("") | _scripts_in("queries")
