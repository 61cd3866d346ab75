"""A blocking read on a connection of its own, for threads that wait for work."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from django_rtq.core.broker.redis.client import MOVING_SECONDS, has_moved, is_current, note_loss, send, translate_error
from django_rtq.core.broker.redis.commands import Command, command_hooks, hooked
from django_rtq.core.broker.redis.connections import ConnectionSettings
from django_rtq.core.broker.redis.speedups import can_read_within, received_reply

#: How long the server holds a read without a token. Proxies must not close idle connections earlier.
BLOCK_SECONDS = 240.0


class BlockingReader:
    """Waits for a token in one of several sorted sets (BZPOPMIN). For one thread."""

    def __init__(
        self,
        connection_settings: ConnectionSettings,
        keys: Sequence[bytes],
        *,
        role: str,
        block_seconds: float = BLOCK_SECONDS,
        on_connect: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection_settings = connection_settings
        self._wait_command: Command = ("BZPOPMIN", *keys, block_seconds)
        self._role = role
        self._block_seconds = block_seconds
        self._on_connect = on_connect
        self._connection: Any = None
        #: BZPOPMIN was sent, and has no reply yet: a token may be given to this reader, although others may need it.
        self.is_waiting = False
        self.token_key: bytes | None = None  # where the last token was taken from; its user sets it to None

    def connect(self) -> None:
        """Connect, if need be, and call `on_connect` then. Raises BrokerUnavailable."""
        self._run([], self._connected)

    def wait(self, seconds: float | None = None, *, is_exact: bool = True) -> bool:
        """Wait for a token, at most `seconds` by the clock of this process: the server's timer is coarse.

        Without `is_exact`, it may end a millisecond late, and costs less. Without `seconds`, wait until the server ends
        the read. Returns whether a token came. Raises BrokerUnavailable.
        """
        return bool(self._run([self._wait_command], lambda: self._wait(seconds, is_exact)))

    def _wait(self, seconds: float | None, is_exact: bool) -> bool:
        connection = self._connected()
        if not self.is_waiting:
            send(connection, [self._wait_command])
            self.is_waiting = True
        if seconds is not None:
            came = can_read_within(connection, seconds) if is_exact else connection.can_read(timeout=seconds)
            if not came:
                return False
        return self._take(connection.read_response())

    def wait_and_claim(
        self, claim: Command, *, slice_seconds: float = 5.0, on_slice: Callable[[], None] = lambda: None
    ) -> Any:
        """Wait for a token and then claim, in one round trip: the server delays the claim until the read has ended.

        Returns the reply to the claim, also when no token came in time; None when the server refused the claim: then
        the caller claims in the usual way. `on_slice` is called every `slice_seconds` meanwhile; what it raises ends
        the wait. Raises BrokerUnavailable.
        """
        return self._run([self._wait_command, claim], lambda: self._wait_and_claim(claim, slice_seconds, on_slice))

    def _wait_and_claim(self, claim: Command, slice_seconds: float, on_slice: Callable[[], None]) -> Any:
        connection = self._connected()
        connection._sock.settimeout(slice_seconds)
        send(connection, [claim] if self.is_waiting else [self._wait_command, claim])
        self.is_waiting = True
        until = time.monotonic() + self._block_seconds + self._connection_settings.socket_timeout
        try:
            self._take(self._read_in_slices(until, on_slice))
        except ResponseError as error:
            if not has_moved(connection, error):
                raise
            self.is_waiting = False  # and the reply to the claim comes next
        answer = received_reply(connection)
        if answer is not None:
            return None if isinstance(answer, Exception) else answer
        try:
            return self._read_in_slices(until, on_slice)
        except ResponseError:
            return None

    def _read_in_slices(self, until: float, on_slice: Callable[[], None]) -> Any:
        """A reply. `on_slice` is called after each time for which the socket waits."""
        while True:
            try:
                return self._connection.read_response(disconnect_on_error=False)
            except RedisTimeoutError:
                if time.monotonic() >= until:
                    raise
            on_slice()
            if not is_current(self._connection):
                raise RedisConnectionError("another server is the master now")

    def _run(self, commands: Sequence[Command], read: Callable[[], Any]) -> Any:
        try:
            with hooked(commands) if command_hooks and commands else nullcontext():
                return read()
        except (RedisError, OSError) as error:
            connection = self._connection
            self.close()
            if has_moved(connection, error):  # no token came
                time.sleep(MOVING_SECONDS)
                return None
            if not isinstance(error, ResponseError) and connection is not None:
                note_loss(connection)
            raise translate_error(error, connection, self._connection_settings.in_settings) from error
        except BaseException:
            self.close()
            raise

    def interrupt(self) -> None:
        """End a wait from another thread: wait() raises BrokerUnavailable there.

        The socket is only shut down here; the thread that reads from it closes it. The file descriptor of a closed
        socket is reused by the next one that is opened, and a read that was about to begin would wait for that one.
        """
        connection = self._connection
        open_socket: socket.socket | None = None if connection is None else connection._sock
        if open_socket is not None:
            with suppress(OSError):  # it is not connected any more
                open_socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, in the thread that waits. The reader may be used again."""
        self.is_waiting = False
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

    def _take(self, token: Any) -> bool:
        """The read has ended, with a token or without."""
        self.is_waiting = False
        if token is not None:
            self.token_key = token[0]
        return token is not None

    def _connected(self) -> Any:
        if self._connection is not None and not is_current(self._connection):
            self.close()  # it leads to a former primary, where no token will come
        if self._connection is None:
            pool = self._connection_settings.blocking_pool(role=self._role, block_seconds=self._block_seconds)
            self._connection = pool.make_connection()
            self._connection.connect()
            self._on_connect()  # this may be another server, or the same one with older data
        return self._connection
