"""RTQ["WAIT_REPLICAS"]: waiting until replicas have what was stored.

WAIT is in the packet of the scripts: it waits for what was written over its own connection.
"""

from __future__ import annotations

import logging
from typing import Any

from django_rtq.core.broker.redis.commands import Command
from django_rtq.exceptions import BrokerError

logger = logging.getLogger("django_rtq")

PATIENCE_SECONDS = 1.0  # or half of the time of a command, if that is less
IMPATIENCE_MS = 1  # 0 would be for ever


class Replicas:
    """How many replicas to wait for. Any thread may use it."""

    def __init__(self, wanted: int, *, command_seconds: float) -> None:
        self._wanted = wanted
        self._patience_ms = max(IMPATIENCE_MS, int(min(PATIENCE_SECONDS, command_seconds / 2) * 1000))
        self._are_missing = False  # as a caller that does not raise found last

    def wait(self, *, is_patient: bool = True) -> Command:
        """The command that waits for them; the last of a packet."""
        return ("WAIT", self._wanted, self._patience_ms if is_patient else IMPATIENCE_MS)

    def wait_again(self) -> Command:
        """wait() for those who go on in any case: not for replicas that were missing a moment ago."""
        return self.wait(is_patient=not self._are_missing)

    def problem(self, reply: Any) -> str:
        """What the reply to it says is wrong; "": nothing."""
        if isinstance(reply, BrokerError):
            return f"Redis did not wait for replicas: {reply}"
        return "" if reply >= self._wanted else f"{reply} of {self._wanted} replicas had it in time"

    def note(self, reply: Any) -> None:
        """Log when replicas begin to be missing, for those who go on in any case."""
        problem = self.problem(reply)
        if problem and not self._are_missing:
            logger.warning("what was stored could get lost with the master of Redis: %s", problem)
        self._are_missing = bool(problem)
