"""Redis commands as values, the scripts that are called by their SHA, and operations of several round trips.

An operation is a generator (`Steps`), which yields commands and is sent the replies: sync and async clients run the
same ones. `replies = yield commands`: one round trip, which may be repeated when its reply was lost. A command that was
refused has its BrokerError in its place.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

Argument = bytes | str | int | float
Command = tuple[Argument, ...] | bytes  # bytes: packed already, in the form in which it is sent


class Token(NamedTuple):
    """A list to which a token comes, and the command that puts it there: it does nothing before the token is due."""

    key: bytes
    put: Command


#: SHA -> Script of core/broker/scripts.py. One that commands call has to be here, to be loaded if Redis lacks it.
SCRIPTS_BY_SHA: dict[bytes, Any] = {}


def script_of(command: Command) -> Any:
    """The script that an EVALSHA command calls."""
    # *<items> $7 EVALSHA $40 <sha> …
    return SCRIPTS_BY_SHA[command.split(b"\r\n", 5)[4] if isinstance(command, bytes) else command[1]]  # type: ignore[index]


def name_of(command: Command) -> str:
    """The name of a command, such as "HGET". For a script its own name, such as "EVALSHA claim"."""
    first = command.split(b"\r\n", 3)[2] if isinstance(command, bytes) else command[0]
    name = first.decode() if isinstance(first, bytes) else str(first)
    return f"EVALSHA {script_of(command).name}" if name == "EVALSHA" else name


#: Of the same packet, these are about what those before them have done or seen.
_DEPENDENT = ("WAIT", "EVALSHA advance_workflow", "EVALSHA find_job")


def with_dependent(again: Sequence[int], commands: Sequence[Command]) -> list[int]:
    """The places of these commands, and of those behind the first that depend on it."""
    dependent = (i for i in range(again[0], len(commands)) if name_of(commands[i]) in _DEPENDENT)
    return sorted({*again, *dependent})


@dataclass(frozen=True, slots=True)
class Pause:
    """What an operation yields to wait for some seconds."""

    seconds: float


class Packet:
    """The commands of one round trip, by what they are for."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self._purposes: list[str] = []

    def add(self, purpose: str, *commands: Command) -> None:
        self.commands += commands
        self._purposes += [purpose] * len(commands)

    def replies(self, replies: Iterable[Any]) -> defaultdict[str, list[Any]]:
        """The replies to the commands of each purpose, in order."""
        by_purpose: defaultdict[str, list[Any]] = defaultdict(list)
        for purpose, reply in zip(self._purposes, replies, strict=True):
            by_purpose[purpose].append(reply)
        return by_purpose


T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
CommandHook = Callable[[Sequence[str]], AbstractContextManager[Any]]
#: Context managers that are entered around each round trip, in the thread that waits for it. A hook is called with the
#: names of the commands, such as ["EVALSHA finish", "EVALSHA claim"]: of all commands of a round trip that several
#: coroutines share. What it raises is logged and ignored. Commands are written to connections directly, so tools that
#: patch redis.Redis.execute_command do not see them.
command_hooks: list[CommandHook] = []
Steps = Generator[Sequence[Command], list[Any], T]
#: Sends commands again that were not executed, and returns all replies.
Mending = Generator[Sequence[Command] | Pause, list[Any], list[Any]]


def run_steps(steps: Generator[S | Pause, R, T], execute: Callable[[S], R]) -> T:
    """Do what an operation yields, send it what that returns, and return what it returns."""
    reply: Any = None
    while True:
        try:  # around no more than this: execute() may call code of a project, which may raise StopIteration
            step = steps.send(reply)
        except StopIteration as end:
            return cast(T, end.value)
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            reply = None
        else:
            reply = execute(step)


async def arun_steps(steps: Generator[S | Pause, R, T], execute: Callable[[S], Awaitable[R]]) -> T:
    """run_steps() for coroutines."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                step = next(steps)
            else:
                step = steps.send(await execute(step))
    except StopIteration as end:
        return cast(T, end.value)


def hooked(commands: Sequence[Command]) -> ExitStack:
    """Enter all hooks for these commands. Their own errors must not make a reply look lost."""
    names = [name_of(command) for command in commands]
    with ExitStack() as stack:
        for hook in tuple(command_hooks):
            try:
                context = hook(names)
                context.__enter__()
                stack.push(partial(_leave, context))
            except Exception:
                logger.exception("a hook of Redis commands failed")
        return stack.pop_all()


def _leave(context: AbstractContextManager[Any], kind: Any, error: BaseException | None, traceback: Any) -> None:
    try:
        context.__exit__(kind, error, traceback)
    except Exception as raised:
        if raised is not error:
            logger.exception("a hook of Redis commands failed")


def checked(replies: list[Any]) -> list[Any]:
    """The replies. Raises the first BrokerError among them."""
    for reply in replies:
        if isinstance(reply, BrokerError):
            raise reply
    return replies


def raised(end: T | BaseException) -> T:
    """One reply, or what one of several operations has returned. Raises its error."""
    if isinstance(end, BaseException):
        raise end
    return end
