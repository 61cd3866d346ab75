"""The Lua scripts, and how one is called.

Each app has the files that are about it in a folder lua/ of its own, with the same folders in it. All are one
set of names.

The header of a file is its signature. ``-- uses:`` names the parts in lua/lib/ that it calls, which may use others.
A call declares one key for each queue, its tag; scripts of one worker get its processing list as the second one. In a
Cluster it declares two at least: see keys.py.

A script takes the keys of a queue from ``q``, by their names in keys.py: those that it uses often are made once in
``named()``, which is generated here, the others where they are used.

Redis creates all functions of a script anew in each call, so what a script does not use would cost time (Redis
functions: D132). link() puts a script together with the functions that it uses of its parts:

1. split each part into definitions: functions and constants;
2. find those that the script reaches through calls;
3. of these, set aside those of parts whose header says ``-- created when first called``, with what only they use;
4. write the others in front of the script, and one function that creates those set aside: calls get them from there.

Parts have functions without methods, and no definition is used before the place where it stands.

A file is read when its script is called first; an upgrade in between is noticed. A process that runs for long reads all
files when it starts. Each script is put together when it is called first: that takes longer, and few are called.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from textwrap import indent

from django_rtq.core.broker.keys import QUEUE_KEYS, QueueKeys
from django_rtq.core.broker.redis.commands import SCRIPTS_BY_SHA, Argument, Command
from django_rtq.exceptions import BrokerRefused

AT_ONCE = 500  # most jobs of the caller in a call (rule 6); Lua's unpack takes some 8,000 values
MAINTAIN_AT_ONCE = 100  # jobs of others, or lanes, that one script call touches (rule 6)
MANY_USES = 5  # of a key in a script

#: They add to what is stored: a full server refuses them.
REFUSED = {"enqueue", "enqueue_many", "fire_schedule", "begin_schedule", "append_log", "store_workflow", "add_members"}
# If its first write is allowed while memory is full, a script may go on. Some that mostly read do this later.
_DRAIN = 'redis.call("DEL", KEYS[1] .. "scratch")\n'
_USES = re.compile(r"^-- uses: (.*)$", re.MULTILINE)
_FIELD = re.compile(r"\b(q|target|home)\.(\w+)")
_NEEDS_WORKER = re.compile(r"^-- KEYS\[2\] running ", re.MULTILINE)
# One constructor with all fields: a table that grows key by key is reallocated five times.
_NAMED = """
local function named(place)
  local tag = KEYS[place or 1]
  return {{ tag = tag, {fields} }}
end
"""
_DEFINITION = re.compile(r"^local (?:function \w+\(.*?^end|.*?)$", re.MULTILINE | re.DOTALL)
_DEFINED = re.compile(r"local (?:function )?(\w+(?:, \w+)*)")
_NO_CODE = re.compile(r"""\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|--.*""")  # texts and comments
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")  # not a field: none behind a dot
_CALL = re.compile(r"(?<![.\w])([A-Za-z_]\w*)\(")
_LAZY_MARK = re.compile(r"^-- created when first called$", re.MULTILINE)

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


class Script:
    """One verb or query: the text that Redis runs, and the keys that it gets. Its file is read on first use."""

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self._folder = folder
        self._heads: dict[bytes, tuple[Argument, ...]] = {}

    @cached_property
    def text(self) -> str:
        """What Redis runs: named(), what the script uses of the parts, and its own file. Raises BrokerRefused."""
        text = _with_names(link(self._source, _parts(self._source)), needs_worker=self.needs_worker)
        drains = not (self._folder or self.name in REFUSED or "q.scratch" in self._source)
        return _DRAIN + text if drains else text

    @cached_property
    def sha(self) -> bytes:
        """The digest by which EVALSHA names the script."""
        sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode()
        SCRIPTS_BY_SHA[sha] = self
        return sha

    @property
    def _source(self) -> str:
        return _read(self._folder, self.name)

    @cached_property
    def needs_worker(self) -> bool:
        """Whether it gets the processing list of one worker."""
        return bool(_NEEDS_WORKER.search(self._source))

    def call(self, keys: QueueKeys, arguments: Iterable[Argument], *, worker: str = "") -> Command:
        """The command that runs this script on one queue."""
        return (*self.head(keys, worker=worker), *arguments)

    def call_many(self, queues: Sequence[QueueKeys], arguments: Iterable[Argument], *, worker: str = "") -> Command:
        """The command that runs this script on several queues that share a server.

        `worker` has a processing list in the first of them.
        """
        return (*self._head(queues, worker), *arguments)

    def head(self, keys: QueueKeys, *, worker: str = "") -> tuple[Argument, ...]:
        """The start of every call on a queue: the script, the queue's tag, and the processing list if it needs one."""
        if self.needs_worker:
            return self._head([keys], worker)
        head = self._heads.get(keys.tag)
        if head is None:
            head = self._heads[keys.tag] = self._head([keys], "")
        return head

    def _head(self, queues: Sequence[QueueKeys], worker: str) -> tuple[Argument, ...]:
        tags = [keys.tag for keys in queues]
        if worker:
            tags.insert(1, queues[0].running(worker))
        if queues[0].guard and len(set(tags)) == 1:
            tags.append(queues[0].guard)
        return (b"EVALSHA", self.sha, len(tags), *tags)


def _with_names(text: str, *, needs_worker: bool) -> str:
    """The text behind named(): the keys by name of the queue whose tag is the key at that place.

    It makes the names that the text uses often. The others are made where they are used: few calls come to all of these
    places, and keys that end with more are joined there anyway.
    """
    uses = Counter(name for _, name in _FIELD.findall(text) if name in QUEUE_KEYS)
    code = {name: f'tag .. "{QUEUE_KEYS[name].name}"' for name in uses}
    often = {name: code.pop(name) for name, n in uses.items() if n >= MANY_USES and not QUEUE_KEYS[name].per}
    if needs_worker:
        often["running"] = "KEYS[2]"
    fields = ", ".join(f"{name} = {made}" for name, made in often.items())
    return _NAMED.format(fields=fields) + "\n" + _FIELD.sub(lambda use: f"{use[1]}.{code.get(use[2], use[2])}", text)


@dataclass(frozen=True)
class _Code:
    """A piece of Lua: the definition of a function or of constants, or the script itself."""

    text: str
    part: str = ""
    is_lazy: bool = False  # created when first called

    @cached_property
    def names(self) -> list[str]:
        """What a definition defines."""
        defined = _DEFINED.match(self.text)
        return defined[1].split(", ") if defined else []

    @cached_property
    def names_used(self) -> set[str]:
        return set(_NAME.findall(_NO_CODE.sub("", self.text)))

    def calling(self, getters: Mapping[str, str]) -> str:
        """The text. Functions that have a getter are called as fields of what it returns."""
        return _CALL.sub(lambda call: f"{getters[call[1]]}.{call[0]}" if call[1] in getters else call[0], self.text)


def link(script: str, parts: Mapping[str, str]) -> str:
    """The text that Redis runs: a script behind what it uses of these parts, which come in the order of their use."""
    source = _Code(script)
    definitions = [
        _Code(found, part, bool(_LAZY_MARK.search(text)))
        for part, text in parts.items()
        for found in _DEFINITION.findall(text)
    ]
    reached = _reached(source, definitions)
    eager = _reached(source, [each for each in definitions if not each.is_lazy])
    lazy = [each for each in reached if each.is_lazy]
    if not lazy:
        return _lines([*eager, source])
    shared = [each for each in reached if not each.is_lazy and each not in eager]
    getters = {name: f'lazy("{each.part}")' for each in lazy for name in each.names}
    return "\n".join(
        [
            "local lazy, lazy_parts",
            _lines(eager, getters),
            _lazy_function(_lines(shared, getters), lazy),
            source.calling(getters),
        ]
    )


def _reached(source: _Code, definitions: Sequence[_Code]) -> list[_Code]:
    """Those of the definitions that this code uses, directly or through others of them."""
    names, reached = set(source.names_used), []
    for definition in reversed(definitions):  # who uses it stands behind it
        if not names.isdisjoint(definition.names):
            reached.append(definition)
            names |= definition.names_used
    return reached[::-1]


def _lazy_function(shared: str, lazy: Iterable[_Code]) -> str:
    """``lazy(part)`` in Lua: returns the functions of a part. All that Redis creates for them in each call."""
    parts: dict[str, list[_Code]] = {}
    for definition in lazy:
        parts.setdefault(definition.part, []).append(definition)
    getters = {name: f"{part}_functions()" for part, own in parts.items() for each in own for name in each.names}
    text = shared
    for part, definitions in parts.items():
        own = [name for each in definitions for name in each.names]
        others = {name: getter for name, getter in getters.items() if name not in own}
        inside = indent(_lines(definitions, others), "  ")
        text += _LAZY_PART.format(part=part, definitions=inside, fields=_fields(own, own))
    return _LAZY.format(parts=indent(text, "    "), fields=_fields(parts, [f"{part}_functions" for part in parts]))


def _lines(pieces: Iterable[_Code], getters: Mapping[str, str] | None = None) -> str:
    return "\n".join(piece.calling(getters or {}) for piece in pieces)


def _fields(names: Iterable[str], values: Iterable[str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))


def _parts(source: str, found: dict[str, str] | None = None) -> dict[str, str]:
    """The parts that a file uses, each once and behind those that it uses itself: name -> text."""
    found = dict(IN_PLACE_OF_APPS) if found is None else found
    uses = _USES.search(source)
    for name in uses[1].split() if uses else ():
        if name not in found and not (IN_PLACE_OF_APPS and not _find("lib", name).exists()):
            part = _read("lib", name)
            _parts(part, found)
            found[name] = part
    return found


@cache
def _read(folder: str, name: str) -> str:
    """The text of a file. Raises BrokerRefused if it is of another version than this process."""
    try:
        text = _find(folder, name).read_text()
    except OSError as error:
        raise BrokerRefused(f"{error}. Was django_rtq upgraded? Restart this process.") from error
    _check_version()
    return text


def _find(folder: str, name: str) -> Path:
    """A file of the core or of an app. If there is none, where the core would have it."""
    paths = [lua / folder / f"{name}.lua" for lua in LUA]
    return next((path for path in paths if path.exists()), paths[0])


def _names_in(folder: str) -> list[str]:
    return sorted(file.stem for lua in LUA for file in (lua / folder).glob("*.lua"))


def _scripts_in(folder: str) -> dict[str, Script]:
    return {name: Script(name, folder) for name in _names_in(folder)}


def _check_version() -> None:
    """Raises BrokerRefused if an upgrade has replaced the package since this process started.

    Code and scripts of two versions may not agree on arguments. What was read before remains in use.
    """
    if _stamp_of_package() == _STAMP:
        return
    own = own_version()
    found = re.search(r'^__version__ = "(.*)"', _PACKAGE.read_text(), re.MULTILINE)
    if found and found[1] != own:
        raise BrokerRefused(
            f"django_rtq was upgraded from {own} to {found[1]} while this process was running. Restart it."
        )


def own_version() -> str:
    """The version of this package that this process has imported."""
    return str(sys.modules["django_rtq"].__version__)


def _stamp_of_package() -> int:
    try:
        return _PACKAGE.stat().st_mtime_ns
    except OSError:  # it has only compiled files, for instance
        return 0


def read_all() -> None:
    """Read every file now, for a process that runs for long: it must not read files of a later version."""
    for folder in ("", "queries", "lib"):
        for name in _names_in(folder):
            _read(folder, name)


_PACKAGE = Path(__file__).parents[2] / "__init__.py"
_STAMP = _stamp_of_package()
#: Folders of Lua files: that of the core, and those of the apps.
LUA = [Path(__file__).parent / "lua", *sorted(_PACKAGE.parent.glob("*/lua"))]
#: Parts of the core that stand in for those of an app that is not there: lua/lib/no_<app>.lua.
IN_PLACE_OF_APPS = {
    part.stem: part.read_text()
    for part in LUA[0].glob("lib/no_*.lua")
    if not (_PACKAGE.parent / part.stem.removeprefix("no_") / "lua").exists()
}
SCRIPTS = _scripts_in("") | _scripts_in("queries")
