"""Adds up the counters of past minutes by the hour, for queries of many days: in each scheduler, once an hour."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.redis.commands import Command
from django_rtq.core.broker.scripts import SCRIPTS

ROLL_UP_HOURS = 12  # added up in one script call


class RollUp:
    """What a scheduler calls."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker, self._queues = broker, queues
        self._next = 0.0  # on time.monotonic()

    def __call__(self) -> bool:
        """Add up some hours of each queue, unless that was done in this hour. It never asks for more time."""
        if time.monotonic() < self._next:
            return True
        commands = [self.command(queue) for queue in self._queues]
        (seconds, _), *left = self._broker.redis.execute([("TIME",), *commands], resend=True)
        if not any(left):  # else the next call goes on
            self._next = time.monotonic() + 3600 - int(seconds) % 3600
        return True

    def command(self, queue: str) -> Command:
        """The call of the script `roll_up`. It replies with the number of hours that are left to add up."""
        return SCRIPTS["roll_up"].call(self._broker.keys.of(queue), (ROLL_UP_HOURS,))
