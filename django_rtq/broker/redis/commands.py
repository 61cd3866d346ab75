"""Redis commands as values, and the scripts that are called by their SHA."""

from __future__ import annotations

from typing import NamedTuple

Argument = bytes | str | int | float
Command = tuple[Argument, ...] | bytes  # bytes: packed already, in the form in which it is sent


class Token(NamedTuple):
    """A list to which a token comes, and the command that puts it there: it does nothing before the token is due."""

    key: bytes
    put: Command


class LuaScript(NamedTuple):
    """A script that commands may call."""

    name: str
    text: str


#: SHA -> script. Commands that call a script need it here, so that it can be loaded when Redis does not know it.
SCRIPTS_BY_SHA: dict[bytes, LuaScript] = {}


def script_of(command: Command) -> LuaScript:
    """The script that an EVALSHA command calls."""
    # *<items> $7 EVALSHA $40 <sha> …
    return SCRIPTS_BY_SHA[command.split(b"\r\n", 5)[4] if isinstance(command, bytes) else command[1]]  # type: ignore[index]


def name_of(command: Command) -> str:
    """The name of a command, such as "HGET". For a script its own name, such as "EVALSHA claim"."""
    first = command.split(b"\r\n", 3)[2] if isinstance(command, bytes) else command[0]
    name = first.decode() if isinstance(first, bytes) else str(first)
    return f"EVALSHA {script_of(command).name}" if name == "EVALSHA" else name
