"""What is counted of runs: nothing, unless an app does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django_rtq.core.broker.redis.commands import Argument
from django_rtq.core.extension import parts

Calls = list[Sequence[Argument]]  # the arguments of calls of add_metrics


class RunMetrics:
    """What is counted of runs, since the last report of a process; `dump`: as another process wrote it, to go on."""

    def __init__(self, dump: bytes = b"") -> None:
        pass

    def add_done(self, run: Any, wait_ms: int) -> None:
        """Count a run that succeeded."""

    def add_failed(self, run: Any, *outcomes: str) -> None:
        """Count a run that failed or expired."""

    def add(self, queue: str, task: str, *outcomes: str) -> None:
        """Count a run of a process that was killed, in its place."""

    def dump(self) -> bytes:
        """What is not reported yet, for the supervisor."""
        return b""

    def make_due(self) -> bool:
        """Report in the next round trip. False: there is nothing."""
        return False

    def take_due(self) -> Mapping[str, Calls]:
        """By queue the calls that report it. Empty if the last report was a moment ago."""
        return {}


def make_metrics(dump: bytes = b"") -> RunMetrics:
    """Those of the app that counts."""
    return next((made(dump) for made in parts("run_metrics")), RunMetrics(dump))
