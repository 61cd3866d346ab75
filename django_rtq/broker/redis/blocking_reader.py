"""Waiting for something to do: one blocking read on a connection of its own."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import RedisError, ResponseError

from django_rtq.broker.redis.client import send, translate
from django_rtq.broker.redis.connections import ConnectionSettings
from django_rtq.broker.redis.sentinel import is_current
from django_rtq.broker.scripts import Command

FINE_SECONDS, FINE_STEP_SECONDS = 0.0025, 0.0005  # the end of a wait, and between two looks meanwhile


class BlockingReader:
    """Waits for a token in one of several sorted sets. For one thread."""

    def __init__(
        self,
        connection_settings: ConnectionSettings,
        keys: Sequence[bytes],
        *,
        role: str,
        block_seconds: float,
        on_connect: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection_settings = connection_settings
        self._wait_command: Command = ("BZPOPMIN", *keys, block_seconds)
        self._role = role
        self._block_seconds = block_seconds
        self._on_connect = on_connect
        self._connection: Any = None
        self._is_waiting = False  # the server has our question, and we have no answer yet

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a token, at most `seconds` on our clock: the server's timer is coarse.

        Without `seconds`, wait until the server ends it. Returns whether a token came. Raises BrokerUnavailable.
        """
        try:
            connection = self._connected()
            if not self._is_waiting:
                send(connection, [self._wait_command])
                self._is_waiting = True
            if seconds is not None and not _can_read(connection, seconds):
                return False
            return self._token_came()
        except (RedisError, OSError) as error:
            self.close()
            raise translate(error) from error
        except BaseException:
            self.close()
            raise

    def wait_and_claim(self, claim: Command) -> Any:
        """Wait for a token and claim when it comes, in one round trip: the server holds the claim back until then.

        Returns the answer to the claim, which it also gives when no token came in time; None when the server refused
        it: whoever asked then asks again in the usual way. Raises BrokerUnavailable.
        """
        try:
            connection = self._connected()
            commands = [claim] if self._is_waiting else [self._wait_command, claim]
            send(connection, commands)
            self._is_waiting = True
            self._token_came()
            return _read(connection)
        except (RedisError, OSError) as error:
            self.close()
            raise translate(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def is_waiting(self) -> bool:
        """Whether the server would give us a token that somebody else may need."""
        return self._is_waiting

    def interrupt(self) -> None:
        """End a wait from another thread: it raises BrokerUnavailable there.

        The socket is only shut down here, and closed by the thread that reads from it. The number of a closed socket is
        given to the next one that is opened, and a read that was about to begin would wait for that one.
        """
        connection = self._connection
        open_socket: socket.socket | None = None if connection is None else connection._sock
        if open_socket is not None:
            with suppress(OSError):  # it is not connected any more
                open_socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Forget the wait, in the thread that waits. It may be used again."""
        self._is_waiting = False
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

    def _token_came(self) -> bool:
        token = self._connection.read_response()
        self._is_waiting = False
        return token is not None

    def _connected(self) -> Any:
        if self._connection is not None and not is_current(self._connection):
            self.close()  # nobody puts a token there any more
        if self._connection is None:
            self._connection = self._connection_settings.blocking_connection(
                role=self._role, block_seconds=self._block_seconds
            )
            self._connection.connect()
            self._on_connect()  # this may be another server, or the same one with older data
        return self._connection


def _can_read(connection: Any, seconds: float) -> bool:
    """As can_read(), but to a fraction of a millisecond: the time-out of a socket is rounded up to whole ones."""
    until = time.monotonic() + seconds
    if seconds > FINE_SECONDS and connection.can_read(timeout=seconds - FINE_SECONDS):
        return True
    while not connection.can_read(timeout=0):
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, FINE_STEP_SECONDS))
    return True


def _read(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError:
        return None
