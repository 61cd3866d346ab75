"""Hooks around commands, for tracing and metrics.

Commands are written to connections directly, so tools that patch redis.Redis.execute_command do not see them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Any

from django_rtq.core.broker.redis.commands import Command, CommandHook, command_hooks, name_of

logger = logging.getLogger("django_rtq")


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
