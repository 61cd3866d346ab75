"""What a page of a queue shows, in as few round trips as its list of jobs takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django_rtq.broker.redis.client import RedisClient
from django_rtq.broker.redis.commands import Command
from django_rtq.inspector.details import QueueDetails
from django_rtq.inspector.job_list import JobPage
from django_rtq.inspector.metrics import Clients


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    """A queue, some of its jobs, and whose they are."""

    details: QueueDetails
    page: JobPage
    clients: Clients


class Ride:
    """A redis that takes some commands along on its first round trip. For one thread, and one use."""

    def __init__(self, redis: RedisClient, passengers: Sequence[Command]) -> None:
        self._redis, self._passengers = redis, passengers
        self.answers: list[Any] = []  # to the passengers, once there was a round trip

    def execute_one(self, command: Command, *, resend: bool = False) -> Any:
        """As RedisClient.execute_one."""
        return self.execute([command], resend=resend)[0]

    def execute(self, commands: Sequence[Command], *, resend: bool = False) -> list[Any]:
        """As RedisClient.execute."""
        if self.answers:
            return self._redis.execute(commands, resend=resend)
        replies = self._redis.execute([*self._passengers, *commands], resend=resend)
        self.answers = replies[: len(self._passengers)]
        return replies[len(self._passengers) :]
