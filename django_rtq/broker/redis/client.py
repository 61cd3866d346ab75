"""Commands out, replies in: several in one round trip, each script loaded when Redis does not know it."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis
from redis import exceptions as redis_exceptions
from redis.sentinel import MasterNotFoundError

from django_rtq.broker.redis.sentinel import is_current
from django_rtq.broker.scripts import Command, pack, script_of
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerRefused, BrokerUnavailable

# What a server says that will serve again soon: after a restart, during a failover, while a script stops it or its
# disk is full.
# redis-py takes the code off an error that it has a class for; Redis before 7 puts it into the error of a script.
_PASSING = re.compile(
    r"(?:^| -)(?:LOADING|READONLY|MASTERDOWN|BUSY|TRYAGAIN|CLUSTERDOWN|MOVED|ASK|NOREPLICAS|UNBLOCKED|MISCONF)\b"
)
_PASSING_ERRORS = (
    redis_exceptions.BusyLoadingError,
    redis_exceptions.ReadOnlyError,
    redis_exceptions.ClusterDownError,  # and MasterDownError
    redis_exceptions.TryAgainError,
    redis_exceptions.AskError,  # and MovedError
)
# What time alone does not cure. redis-py has no classes for these.
_REFUSED = re.compile(r"DB index is out of range|invalid DB index|CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER")
_NOT_CONNECTED = re.compile(r"Error -?\d+ connecting to ")
_FULL = re.compile(r"(?:^| -)OOM\b")


class RedisClient:
    """Sends commands over the connections of one pool. Any thread may use it."""

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self._pool = pool
        # Before redis-py 5.3 the pool wants to be told a command, since then it does not want to be.
        named = "command_name" in inspect.signature(type(pool).get_connection).parameters
        self._pool_arguments = ("EVALSHA",) if named and redis.VERSION < (5, 3) else ()
        # Ours from the pool on: its bookkeeping at each loan takes as long as a fifth of a delay().
        self._idle: list[Any] = []
        #: Another number after each connection that ended: Redis may have restarted since with older data, or another
        #: server may answer now. Only compare it with a former value.
        self.connections_lost = 0
        self._numbers = itertools.count(1)

    def execute_each(self, commands: Sequence[Command], *, resend: bool = False) -> list[Any]:
        """The replies, in order; a command that was refused has its BrokerError in its place.

        With `resend` the commands are sent once more when the connection turns out to be lost: only for what may be
        sent twice. Raises BrokerUnavailable when there is no answer.
        """
        if not commands:
            return []
        try:
            # What may be sent twice finds out by itself that its connection was cut while nobody used it.
            replies = self._exchange(commands, is_tried=not resend)
        except ConnectionLost:
            if not resend:
                raise
            replies = self._exchange(commands)
        for reply in replies:
            if isinstance(reply, redis_exceptions.RedisError):
                return self._mended(commands, replies)
        return replies

    def execute_one(self, command: Command, *, resend: bool = False) -> Any:
        """The reply to one command. Raises BrokerError."""
        (reply,) = self.execute_each((command,), resend=resend)
        if isinstance(reply, BrokerError):
            raise reply
        return reply

    def execute(self, commands: Sequence[Command], *, resend: bool = False) -> list[Any]:
        """The replies to several commands. Raises the first BrokerError."""
        replies = self.execute_each(commands, resend=resend)
        for reply in replies:
            if isinstance(reply, BrokerError):
                raise reply
        return replies

    def close(self) -> None:
        """Close all connections. It may be used again."""
        self._drop_idle()
        self._pool.disconnect()

    def _mended(self, commands: Sequence[Command], replies: list[Any]) -> list[Any]:
        """The replies, when all scripts are known; errors as ours."""
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, redis_exceptions.NoScriptError)]
        if unknown:
            self._load([commands[i] for i in unknown])
            for i, reply in zip(unknown, self._exchange([commands[i] for i in unknown]), strict=True):
                replies[i] = reply
        return [self._checked(reply) for reply in replies]

    def _load(self, commands: Sequence[Command]) -> None:
        texts = {script_of(command).text for command in commands}
        for reply in self._exchange([("SCRIPT", "LOAD", text) for text in texts]):
            if isinstance(reply, Exception):
                raise translate(reply) from reply

    def _exchange(self, commands: Sequence[Command], *, is_tried: bool = True) -> list[Any]:
        try:
            connection = self._borrow(is_tried=is_tried)
        except redis_exceptions.RedisError as error:
            raise translate(error) from error
        try:
            replies = exchange(connection, commands)
        except (redis_exceptions.RedisError, OSError) as error:
            self._drop(connection)
            raise translate(error) from error
        except BaseException:
            # A reply may be on its way: nobody must take it for the answer to another question.
            self._drop(connection)
            raise
        self._idle.append(connection)
        return replies

    def _borrow(self, *, is_tried: bool) -> Any:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if is_current(connection) and (not is_tried or _is_open(connection)):
                return connection
            self._drop(connection)
        return self._pool.get_connection(*self._pool_arguments)

    def _drop(self, connection: Any) -> None:
        # Without a lock: an exception may be planted in a job at any bytecode, and would leave it locked.
        self.connections_lost = next(self._numbers)
        connection.disconnect()
        self._pool.release(connection)

    def _drop_idle(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._drop(self._idle.pop())

    def _checked(self, reply: Any) -> Any:
        if not isinstance(reply, redis_exceptions.RedisError):
            return reply
        error = translate(reply)
        if isinstance(error, BrokerUnavailable):
            # The next connection may find the new primary.
            self._drop_idle()
            self._pool.disconnect(inuse_connections=False)
        error.__cause__ = reply
        return error


def _is_open(connection: Any) -> bool:
    """Whether nothing waits to be read: neither the end, nor what nobody asked for."""
    try:
        return not connection.can_read()
    except (redis_exceptions.RedisError, OSError):
        return False


def send(connection: Any, commands: Sequence[Command]) -> None:
    """Send commands over one connection, in one packet."""
    connection.send_packed_command([b"".join(map(pack, commands))])


def exchange(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands over one connection and read a reply for each; errors are replies."""
    send(connection, commands)
    replies = []
    for _ in commands:
        try:
            replies.append(connection.read_response())
        except redis_exceptions.ResponseError as error:
            replies.append(error)
    return replies


def as_dict(reply: Any) -> dict[bytes, bytes]:
    """The flat list that HGETALL answers."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def clock_ms(reply: Any) -> int:
    """What TIME answers, as milliseconds."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


class ConnectionLost(BrokerUnavailable):
    """The connection was cut, at once: it was idle for long, or the server went away."""


def translate(error: BaseException) -> BrokerError:
    """An error of redis-py as one of ours."""
    text = str(error)
    if isinstance(error, redis_exceptions.OutOfMemoryError) or _FULL.search(text):
        return BrokerFull(
            f"Redis is out of memory, and nothing was stored. Raise its maxmemory, or let workers catch up. ({text})"
        )
    if isinstance(error, redis_exceptions.TimeoutError):
        return BrokerUnavailable(f"Redis did not answer in time: {text}")
    if isinstance(error, _PASSING_ERRORS) or _PASSING.search(text):
        return BrokerUnavailable(f"Redis cannot serve now: {text}")
    if isinstance(error, redis_exceptions.AuthenticationError | redis_exceptions.AuthorizationError):
        return BrokerRefused(f'Redis refused the credentials in RTQ["REDIS"]: {text}')
    if _REFUSED.search(text):
        return BrokerRefused(f'Redis cannot be used as RTQ["REDIS"] says: {text}')
    if isinstance(error, MasterNotFoundError):  # its text goes on with what each Sentinel said, in full
        return ConnectionLost(f"No Sentinel names a master: {text.partition(' : ')[0]}")
    if isinstance(error, redis_exceptions.ConnectionError | OSError):
        what = "Redis cannot be reached" if _NOT_CONNECTED.match(text) else "The connection to Redis was lost"
        return ConnectionLost(f"{what}: {text}")
    return BrokerError(f"Redis refused a command: {type(error).__name__}: {text}")
