"""Runs operations on several servers at once: the packets to all of them are sent before a reply is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from redis import exceptions as redis_exceptions

from django_rtq.core.broker.redis.client import RedisClient, read_replies, send
from django_rtq.core.broker.redis.commands import Command, Steps, command_hooks
from django_rtq.exceptions import BrokerError, BrokerUnavailable

T = TypeVar("T")


class Sent:
    """Commands that are under way to Redis. For one thread, which calls replies() or give_up()."""

    def __init__(self, client: RedisClient, commands: Sequence[Command]) -> None:
        self._client, self._connections, self._commands = client, client.connections, commands
        self._connection: Any = None  # None: they are sent with the question for the replies
        if not command_hooks:  # a span is about one exchange
            with suppress(redis_exceptions.RedisError, OSError):
                self._connection = self._connections.take(is_checked=False)
                send(self._connection, commands)

    def replies(self) -> list[Any]:
        """As from execute_each(), with the same errors."""
        if self._connection is None:
            return self._client.execute_each(self._commands, resend=True)
        try:
            replies = read_replies(self._connection, self._commands, needs_first=False)
        except (redis_exceptions.RedisError, OSError) as error:
            unavailable = self._client.lost(self._connection, error)
            self._connection = None
            if not isinstance(unavailable, BrokerUnavailable) or not unavailable.is_connection_lost:
                raise unavailable from error
            return self._client.execute_each(self._commands)
        self._connections.give_back(self._connection)
        self._connection = None
        if any(isinstance(reply, redis_exceptions.RedisError) for reply in replies):
            return self._client.mended(self._commands, replies)
        return replies

    def give_up(self) -> None:
        """Nobody asks for the replies."""
        if self._connection is not None:
            self._connections.drop(self._connection)
            self._connection = None


def run_together(operations: Sequence[tuple[RedisClient, Steps[T]]]) -> list[T | BrokerError]:
    """Run operations on several servers: in each round all packets are sent before a reply is read.

    Returns what each of them returns, or its BrokerError.
    """
    ends: dict[int, T | BrokerError] = {}
    replies: dict[int, list[Any]] = {}
    while len(ends) < len(operations):
        sent: dict[int, Sent] = {}
        try:
            for number, (client, steps) in enumerate(operations):
                if number not in ends:
                    try:
                        sent[number] = Sent(client, steps.send(replies[number]) if number in replies else next(steps))
                    except StopIteration as end:
                        ends[number] = end.value
                    except BrokerError as error:
                        ends[number] = error
            for number, packet in sent.items():
                try:
                    replies[number] = packet.replies()
                except BrokerError as error:
                    ends[number] = error
        finally:
            for packet in sent.values():
                packet.give_up()
    return [ends[number] for number in range(len(operations))]
