"""Collects the commands of one round trip by what they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django_rtq.broker.redis.commands import Command
from django_rtq.inspector.metrics.totals import KINDS as TOTALS

_KINDS = (
    *("overview", "history", "processing", "note", "left"),
    *("tasks", "past_tasks", "task_failures", "failures", "busiest", *TOTALS),
)


class Reads:
    """Commands of one round trip, grouped by kind."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self._kinds: list[str] = []

    def add(self, kind: str, command: Command) -> None:
        self._kinds.append(kind)
        self.commands.append(command)

    def replies(self, replies: Iterable[Any]) -> dict[str, list[Any]]:
        """The replies to the commands of each kind, in order."""
        of_kind: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
        for kind, reply in zip(self._kinds, replies, strict=True):
            of_kind[kind].append(reply)
        return of_kind
