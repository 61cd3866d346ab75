"""Puts a Lua script together with the functions that it uses of its parts.

Redis creates all functions of a script anew in each call, so what a script does not use would cost time (Redis
functions: D132). Steps:

1. split each part into definitions: functions and constants;
2. find those that the script reaches through calls;
3. of these, set aside those of parts whose header says ``-- created when first called``, with what only they use;
4. write the others in front of the script, and one function that creates those set aside: calls get them from there.

Parts have functions without methods, and no definition is used before the place where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent

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
