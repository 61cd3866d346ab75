"""Hooks around commands, for tracing and metrics.

Commands are written to connections directly, so tools that patch redis.Redis.execute_command do not see them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from django_rtq.core.broker.redis.commands import Command, name_of

logger = logging.getLogger("django_rtq")

Result = TypeVar("Result")
CommandHook = Callable[[Sequence[str]], AbstractContextManager[Any]]

#: Context managers that are entered around each round trip, in the thread that waits for it. A hook is called with the
#: names of the commands, such as ["EVALSHA finish", "EVALSHA claim"]: of all commands of a round trip that several
#: coroutines share. What it raises is logged and ignored.
command_hooks: list[CommandHook] = []


def run_hooked(commands: Sequence[Command], run: Callable[[], Result]) -> Result:
    """Call `run`, which sends these commands, inside of all hooks. Callers skip this while there are no hooks."""
    with hooked(commands):
        return run()


@contextmanager
def hooked(commands: Sequence[Command]) -> Iterator[None]:
    """Enter all hooks for these commands."""
    names = [name_of(command) for command in commands]
    with ExitStack() as stack:
        for hook in tuple(command_hooks):
            stack.enter_context(_Guarded(hook, names))
        yield


class _Guarded:
    """Enters and leaves a hook. Its own errors must not make a reply look lost."""

    def __init__(self, hook: CommandHook, names: Sequence[str]) -> None:
        self._hook = hook
        self._names = names
        self._context: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        try:
            context = self._hook(self._names)
            context.__enter__()
            self._context = context
        except Exception:
            logger.exception("a hook of Redis commands failed")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._context is not None:
                self._context.__exit__(kind, error, traceback)
        except Exception as raised:
            if raised is not error:
                logger.exception("a hook of Redis commands failed")
