"""Sends commands, several in one round trip, and loads scripts that Redis does not know."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import redis
from redis import exceptions as redis_exceptions
from redis.sentinel import MasterNotFoundError

from django_rtq.core.broker.redis.commands import (
    Command,
    Mending,
    Steps,
    Token,
    checked,
    command_hooks,
    hooked,
    run_steps,
    script_of,
    with_dependent,
)
from django_rtq.core.broker.redis.speedups import FewIdleConnections, IdleConnections, pack
from django_rtq.exceptions import BrokerError, BrokerFull, BrokerRefused, BrokerUnavailable

_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_ca_path")
# Replies of a server that will work again soon: after a restart, during a failover, while a script blocks it, or while
# its disk is full.
# redis-py removes the code of an error that it has a class for; Redis before 7 puts it into the error of a script.
_TEMPORARY = re.compile(
    r"(?:^| -)(?:LOADING|READONLY|MASTERDOWN|BUSY|TRYAGAIN|CLUSTERDOWN|NOREPLICAS|UNBLOCKED|MISCONF)\b"
)
_TEMPORARY_ERRORS = (
    redis_exceptions.BusyLoadingError,
    redis_exceptions.ReadOnlyError,
    redis_exceptions.ClusterDownError,  # and MasterDownError
    redis_exceptions.TryAgainError,
)
# Errors that waiting does not fix. redis-py has no classes for these.
_REFUSED = re.compile(r"DB index is out of range|invalid DB index|CERTIFICATE_VERIFY_FAILED|WRONG_VERSION_NUMBER")
_NOT_PERMITTED = re.compile(r"NOPERM|no permissions?\b|user executing the script", re.IGNORECASE)
_PERMISSIONS = (
    'Give the user of RTQ["REDIS"] the permissions of docs/redis.md#access: the keys ~rtq:* and ~{rtq:*, with '
    'RTQ["PREFIX"] in place of rtq, and the commands there; in a Cluster those of docs/scaling.md#access.'
)
_NOT_CONNECTED = re.compile(r"Error -?\d+ connecting to ")
_FULL = re.compile(r"(?:^| -)OOM\b")
# What a node of a Cluster replies to those who take it for a single server.
_OF_CLUSTER = (redis_exceptions.AskError, redis_exceptions.ClusterCrossSlotError)  # and MovedError
InSettings = Callable[[str], str]  # makes what is said of RTQ["REDIS"] be said of the setting that takes its place
LEADS_TO_CLUSTER = (
    'RTQ["REDIS"] leads to a node of a Redis Cluster. Name the Cluster: write {"cluster": ["host:port", …]} with the '
    "addresses of some nodes, or redis+cluster://host:port,host:port."
)

MOVING_SECONDS = 0.05  # between two blocking reads while the master moves
FULL_SERVER_SECONDS = 1.0  # the same while a full server refuses them

T = TypeVar("T")


class WrongAddress(redis_exceptions.ConnectionError):
    """RTQ["REDIS"] leads to something else than it says, and waiting does not help. The message says the cure."""


# -- connections to a master that moves, behind Sentinels or in a Cluster, have a Master of scale/masters.py


def is_current(connection: Any) -> bool:
    """False if this connection leads to a former master. Check it before sending a command."""
    return bool(getattr(connection, "is_current", True))


def note_loss(connection: Any) -> None:
    """This connection was lost: if its master may have moved, the next one looks for it."""
    master = getattr(connection, "master", None)
    if master is not None:
        master.forget((connection.host, connection.port))


def has_moved(connections: Any, error: Any) -> bool:
    """Whether this error, of a connection or of one of a pool, says that nothing was executed, as the master moves."""
    master = getattr(connections, "master", None)
    return master is not None and master.has_moved(error)


def wrong_address(pool: redis.ConnectionPool, error: Exception) -> str | None:
    """What is wrong in RTQ["REDIS"], after this error of connecting; None: nothing that is certain.

    Waiting does not fix an address or a file that is wrong. Called after connecting has failed only.
    """
    options, master = pool.connection_kwargs, getattr(pool, "master", None)
    if master is not None and master.asked:
        options = {**options, **dict(zip(("host", "port"), master.asked, strict=True))}
    if master is not None and isinstance(error, MasterNotFoundError):
        return cast(str | None, master.unknown_service(str(error)))
    for name in _FILES:
        if options.get(name) and not os.access(options[name], os.R_OK):
            return f'RTQ["REDIS"] has {name}={options[name]!r}, a file that does not exist or cannot be read.'
    if isinstance(error, redis_exceptions.InvalidResponse):
        address = f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        return f'RTQ["REDIS"] leads to {address}, where no Redis answers, but another server. Check host and port.'
    return None


class RedisClient:
    """Sends commands over the connections of one pool. Any thread may use it.

    redis-py repeats no command. This does, once after a lost connection, for those that are safe to repeat (`resend`).
    """

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self._pool, self.in_settings = pool, in_settings_of(pool)
        self.connections = IdleConnections(pool)

    def begin(self, commands: Sequence[Command]) -> Any:
        """Send commands that may run twice, for execute_each(), which reads the replies. Returns the connection.

        None: it has to send them, too.
        """
        if command_hooks or not commands:  # a span is about one exchange
            return None
        connection = None
        try:
            connection = self.connections.take(is_checked=False)
            send(connection, commands)
        except (redis_exceptions.RedisError, OSError):
            if connection is not None:
                self.connections.drop(connection)
            return None
        return connection

    def execute_each(self, commands: Sequence[Command], *, resend: bool = False, sent: Any = None) -> list[Any]:
        """The replies, in order; a command that was refused has its BrokerError in its place.

        With `resend` the commands are sent once more when the connection turns out to be lost: only for commands that
        may run twice. `sent`: from begin(). Raises BrokerUnavailable when there is no reply.
        """
        if not commands:
            return []
        try:
            # Commands that may run twice find out by themselves that an idle connection was closed.
            replies = self._exchange(commands, is_checked=not resend, sent=sent)
        except BrokerUnavailable as error:
            if not resend or not error.is_connection_lost:
                raise
            replies = self._exchange(commands)
        for reply in replies:
            if isinstance(reply, redis_exceptions.RedisError):
                return self.mended(commands, replies)
        return replies

    def execute_one(self, command: Command, *, resend: bool = False) -> Any:
        """The reply to one command. Raises BrokerError."""
        (reply,) = self.execute_each((command,), resend=resend)
        if isinstance(reply, BrokerError):
            raise reply
        return reply

    def execute(self, commands: Sequence[Command], *, resend: bool = False) -> list[Any]:
        """The replies to several commands. Raises the first BrokerError."""
        return checked(self.execute_each(commands, resend=resend))

    def run(self, steps: Steps[T]) -> T:
        """Send what an operation yields, and return what it returns. Raises what it raises, and BrokerUnavailable."""
        return run_steps(steps, partial(self.execute_each, resend=True))

    def close(self) -> None:
        """Close all connections. The client may be used again."""
        self.connections.close()

    def mended(self, commands: Sequence[Command], replies: list[Any]) -> list[Any]:
        """The replies after what was not executed was sent again, with errors as BrokerError."""
        return translated(run_steps(mended(commands, replies, self._pool), self._exchange), self.connections)

    def _exchange(self, commands: Sequence[Command], *, is_checked: bool = True, sent: Any = None) -> list[Any]:
        try:
            connection = self.connections.take(is_checked=is_checked) if sent is None else sent
        except redis_exceptions.RedisError as error:
            raise connect_error(self._pool, error) from error
        try:
            replies = exchange(connection, commands) if sent is None else read_replies(connection, commands)
        except (redis_exceptions.RedisError, OSError) as error:
            note_loss(connection)
            self.connections.drop(connection)
            self.connections.close_idle()  # they are as old: another try needs a new one
            raise translate_error(error, connection, self.in_settings) from error
        except BaseException:
            # A reply may be on its way: it must not be taken for the reply to another command.
            self.connections.drop(connection)
            raise
        self.connections.give_back(connection)
        return replies


class BlockingClient(RedisClient):
    """Waits for tokens in lists. Any thread may use it; each has a connection while it waits."""

    def __init__(self, pool: redis.ConnectionPool) -> None:
        super().__init__(pool)
        self.connections = FewIdleConnections(pool)

    def wait(self, token: Token, seconds: float) -> bool:
        """Wait until there is a token, for `seconds` at most. Returns whether it came. It stays for others that wait.

        May end early while the server cannot block. Raises BrokerError.
        """
        (reply,) = self._exchange([("BLMOVE", token.key, token.key, "LEFT", "LEFT", max(0.001, round(seconds, 3)))])
        if has_moved(self._pool, reply):
            time.sleep(MOVING_SECONDS)
            return False
        try:
            return checked(translated([reply], self.connections))[0] is not None
        except BrokerFull:
            time.sleep(min(seconds, FULL_SERVER_SECONDS))
            return False


def mended(commands: Sequence[Command], replies: list[Any], pool: redis.ConnectionPool) -> Mending:
    """The replies after what was not executed was sent again: calls of unknown scripts, what met a moving master."""
    complete = partial(with_scripts, in_settings=in_settings_of(pool))
    replies = yield from complete(commands, replies)
    moving: Any = pool
    if hasattr(pool, "master"):
        replies = yield from moving.master.resend(commands, replies, moving.patience_seconds, complete)
    return replies


def with_scripts(commands: Sequence[Command], replies: list[Any], in_settings: InSettings) -> Steps[list[Any]]:
    """The replies after unknown scripts were loaded and called again, in one round trip."""
    unknown = [i for i, reply in enumerate(replies) if isinstance(reply, redis_exceptions.NoScriptError)]
    if unknown:
        again = with_dependent(unknown, commands)
        also = [commands[i] for i in again]
        loaded = yield from load_scripts([commands[i] for i in unknown], in_settings, also=also)
        for i, reply in zip(again, loaded, strict=True):
            replies[i] = reply
    return replies


def load_scripts(
    commands: Sequence[Command], in_settings: InSettings, *, also: Sequence[Command] = ()
) -> Steps[list[Any]]:
    """Load the scripts that these commands call. Returns the replies to `also`, sent after them. Raises BrokerError."""
    texts = {script_of(command).text for command in commands}
    replies = yield [*(("SCRIPT", "LOAD", text) for text in texts), *also]
    for reply in replies[: len(texts)]:
        if isinstance(reply, Exception):
            raise translate_error(reply, None, in_settings) from reply
    return replies[len(texts) :]


def translated(replies: Sequence[Any], connections: IdleConnections) -> list[Any]:
    """The replies with errors as BrokerError. After some of them a new connection may find the new primary."""
    checked_replies, in_settings = [], in_settings_of(connections.pool)
    for reply in replies:
        if isinstance(reply, redis_exceptions.RedisError):
            is_moving = has_moved(connections.pool, reply)
            error = (
                BrokerUnavailable(f"{_MOVING} ({reply})") if is_moving else translate_error(reply, None, in_settings)
            )
            error.__cause__ = reply
            checked_replies.append(error)
            if isinstance(error, BrokerUnavailable):
                connections.close_idle()
        else:
            checked_replies.append(reply)
    return checked_replies


def send(connection: Any, commands: Sequence[Command]) -> None:
    """Send commands over one connection, in one packet."""
    connection.send_packed_command([b"".join(map(pack, commands))])


def exchange(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands over one connection and read a reply for each; errors are replies."""
    if command_hooks:
        with hooked(commands):
            send(connection, commands)
            return read_replies(connection, commands)
    send(connection, commands)
    return read_replies(connection, commands)


def read_replies(connection: Any, commands: Sequence[Command]) -> list[Any]:
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(connection.read_response())
        except redis_exceptions.ResponseError as error:
            replies.append(error)
    return replies


def as_dict(reply: Any) -> dict[bytes, bytes]:
    """The flat list that HGETALL replies, as a dictionary."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def clock_ms(reply: Any) -> int:
    """The reply to TIME, in milliseconds."""
    seconds, micros = reply
    return int(seconds) * 1000 + int(micros) // 1000


_MOVING = (
    "Redis cannot serve now: the slot of the queues moves between nodes of the Cluster. If the move was broken off: "
    "redis-cli --cluster fix"
)
_SLOW_CONNECT = (
    "Redis cannot be reached: connecting took too long. Check address and firewall, and for a rediss:// URL that the "
    "port speaks TLS."
)


def connect_error(pool: redis.ConnectionPool, error: Exception) -> BrokerError:
    """An error of redis-py, while it connected, as a BrokerError."""
    reason = wrong_address(pool, error)
    in_settings = in_settings_of(pool)
    return BrokerRefused(in_settings(reason)) if reason else translate_error(error, pool.connection_kwargs, in_settings)


def in_settings_of(pool: Any) -> InSettings:
    """What ConnectionSettings gave to a pool."""
    return getattr(pool, "in_settings", str)


def translate_error(error: BaseException, lost: Any = None, in_settings: InSettings = str) -> BrokerError:
    """An error of redis-py as a BrokerError.

    `lost`: the connection without a reply, or the arguments of the one that was not made. redis-py does not say in all
    errors where it led, and a project may have many servers.
    """
    text = str(error)
    if isinstance(error, redis_exceptions.OutOfMemoryError) or _FULL.search(text):
        return BrokerFull(
            f"Redis is out of memory, and nothing was stored. Raise its maxmemory, or let workers catch up. ({text})"
        )
    if isinstance(error, redis_exceptions.TimeoutError):
        slow = _SLOW_CONNECT if text.startswith("Timeout connecting") else f"Redis did not answer in time: {text}"
        return BrokerUnavailable(_with_address(slow, lost))
    if isinstance(error, _TEMPORARY_ERRORS) or _TEMPORARY.search(text):
        return BrokerUnavailable(f"Redis cannot serve now: {text}")
    if reason := _refusal(error, text):
        return BrokerRefused(_with_address(in_settings(reason), lost))
    if isinstance(error, MasterNotFoundError):  # its text continues with what each Sentinel said, in full
        head, _, errors = text.partition(" : ")
        return _connection_lost(f"No Sentinel names a master: {head}{'. Not all Sentinels answer' if errors else ''}")
    if isinstance(error, redis_exceptions.ConnectionError | OSError):
        what = "Redis cannot be reached" if _NOT_CONNECTED.match(text) else "The connection to Redis was lost"
        return _connection_lost(_with_address(f"{what}: {text}", lost))
    cure = f". {in_settings(_PERMISSIONS)}" if _NOT_PERMITTED.search(text) else ""
    return BrokerError(f"Redis refused a command: {type(error).__name__}: {text}{cure}")


def _with_address(text: str, lost: Any) -> str:
    """The text with the address of the server, unless it has it or that is not known."""
    of_lost = lost.get if isinstance(lost, Mapping) else partial(getattr, lost)
    where = of_lost("path", None) or (of_lost("host", None) and f"{of_lost('host', None)}:{of_lost('port', 6379)}")
    return text if not where or where in text else f"{text} ({where})"


def _refusal(error: BaseException, text: str) -> str | None:
    """What is wrong in RTQ["REDIS"], if waiting does not help."""
    if isinstance(error, redis_exceptions.AuthenticationError | redis_exceptions.AuthorizationError):
        return f'Redis refused the credentials in RTQ["REDIS"]: {text}'
    if isinstance(error, _OF_CLUSTER):
        return LEADS_TO_CLUSTER
    if isinstance(error, WrongAddress):
        return text
    return f'Redis cannot be used as RTQ["REDIS"] says: {text}' if _REFUSED.search(text) else None


def _connection_lost(text: str) -> BrokerUnavailable:
    error = BrokerUnavailable(text)
    error.is_connection_lost = True
    return error
