"""Sends commands for coroutines: calls of one event loop that come together are sent together.

Why not redis.asyncio: D82. No thread is used, but to connect: redis-py connects as it does for threads, so it knows
TLS, Unix sockets, Sentinels and credentials. Only sending and reading is done here, on the socket, so a connection
belongs to no event loop: it is used by one packet after the other, and loops may come and go.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import hiredis
import redis
from redis import exceptions as redis_exceptions

from django_rtq.core.broker.redis.client import (
    connect_error,
    exchange,
    in_settings_of,
    is_current,
    mended,
    note_loss,
    translate_error,
    translated,
)
from django_rtq.core.broker.redis.commands import Command, Steps, arun_steps, checked, command_hooks, hooked
from django_rtq.core.broker.redis.speedups import FewIdleConnections, pack
from django_rtq.exceptions import BrokerUnavailable

T = TypeVar("T")

MAX_PACKETS = 4  # of one event loop that wait for replies, each on a connection of its own
MAX_PACKET_BYTES = 1 << 20  # unless one call has more
_RECEIVE_BYTES = 65_536
_INCOMPLETE = object()  # instead of a reply
_CANCELLED = "The event loop has cancelled the task that sent this command: it may have run."


class Request(NamedTuple):
    """The commands of one call, packed, and who waits for the replies."""

    commands: list[bytes]
    replies: asyncio.Future[list[Any]]


class AsyncConnections:
    """Connections for coroutines. Any thread and any event loop may use them."""

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self.pool = pool
        self._connections = FewIdleConnections(pool)
        self.needs_threads = True  # until a connection was made that does not

    async def round_trip(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands; errors are replies. Raises BrokerError when there is none."""
        try:
            connection = await self._take()
        except (redis_exceptions.RedisError, OSError) as error:
            raise await asyncio.to_thread(connect_error, self.pool, error) from error
        try:
            replies = await aexchange(connection, commands)
        except (redis_exceptions.RedisError, OSError) as error:
            note_loss(connection)
            self._connections.drop(connection)
            lost = translate_error(error, connection, in_settings_of(self.pool))
            if isinstance(lost, BrokerUnavailable) and lost.is_connection_lost:
                self.close()  # the idle ones were closed by the same event
            raise lost from error
        except BaseException:
            # A reply may be on its way: it must not be taken for the reply to another command.
            self._connections.drop(connection)
            raise
        self._connections.give_back(connection)
        return replies

    async def deliver(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to commands that may run twice, with errors as BrokerError. Loads scripts, sends once more."""
        try:
            replies = await self.round_trip(commands)
        except BrokerUnavailable as error:
            if not error.is_connection_lost:
                raise
            replies = await self.round_trip(commands)
        if any(isinstance(reply, redis_exceptions.RedisError) for reply in replies):
            replies = await arun_steps(mended(commands, replies, self.pool), self.round_trip)
            return translated(replies, self._connections)
        return replies

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close_idle()

    async def _take(self) -> Any:
        while True:
            connection = self._connections.take_idle()
            if connection is None:
                # The thread keeps it for the first caller: this coroutine may be cancelled meanwhile.
                await asyncio.to_thread(self._connect)
                continue
            try:
                master = getattr(connection, "master", None)
                if master is not None and master.is_due:
                    await asyncio.to_thread(master.refresh)
            except BaseException:
                self._connections.drop(connection)
                raise
            if is_current(connection):
                return connection
            self._connections.drop(connection)

    def _connect(self) -> None:
        connection = self._connections.make()
        self.needs_threads = not prepare(connection)
        self._connections.give_back(connection)


class AsyncRedisClient:
    """Sends commands that may run twice, for coroutines of any event loop."""

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self._connections = AsyncConnections(pool)
        self._outboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Outbox] = WeakKeyDictionary()

    async def execute_each(self, commands: Sequence[Command]) -> list[Any]:
        """The replies, in order; a command that was refused has its BrokerError in its place.

        The commands are sent once more when the connection turns out to be lost. Raises BrokerUnavailable when there
        is no reply. If it is cancelled, the commands may run all the same.
        """
        return await self.post(commands) if commands else []

    async def execute(self, commands: Sequence[Command]) -> list[Any]:
        """The replies to several commands. Raises the first BrokerError."""
        return checked(await self.execute_each(commands))

    async def run(self, steps: Steps[T]) -> T:
        """Send what an operation yields, and return what it returns. Raises what it raises, and BrokerUnavailable."""
        return await arun_steps(steps, self.execute_each)

    def post(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        """Send commands soon. Returns the replies to come."""
        loop = asyncio.get_running_loop()
        outbox = self._outboxes.get(loop)
        if outbox is None:
            outbox = self._outboxes[loop] = _Outbox(self._connections.deliver)
        request = Request([pack(command) for command in commands], loop.create_future())
        outbox.add(request)
        return request.replies

    def close(self) -> None:
        """Close the connections that nobody uses. The client may be used again."""
        self._connections.close()


class _Outbox:
    """The requests of one event loop that have to be sent. Refers to the loop only while there are some."""

    def __init__(self, deliver: Callable[[list[bytes]], Coroutine[Any, Any, list[Any]]]) -> None:
        self._deliver = deliver
        self._waiting: deque[Request] = deque()
        self._senders: set[asyncio.Task[None]] = set()
        self._has_new_sender = False  # which has not looked for requests yet

    def add(self, request: Request) -> None:
        """Send a request, together with those that are added before the event loop continues."""
        self._waiting.append(request)
        if not self._has_new_sender and len(self._senders) < MAX_PACKETS:
            self._has_new_sender = True
            sender = asyncio.get_running_loop().create_task(self._send_all())
            self._senders.add(sender)
            sender.add_done_callback(self._forget)

    def _forget(self, sender: asyncio.Task[None]) -> None:
        self._senders.discard(sender)
        if sender.cancelled() and not self._senders:  # with all tasks of the event loop
            self._has_new_sender = False
            while self._waiting:
                fail(self._waiting.popleft().replies, BrokerUnavailable(_CANCELLED))

    async def _send_all(self) -> None:
        self._has_new_sender = False
        while packet := self._next_packet():
            try:
                replies = iter(await self._deliver([command for request in packet for command in request.commands]))
            except Exception as error:  # noqa: BLE001 - each caller gets it
                for request in packet:
                    fail(request.replies, error)
            except BaseException:
                for request in packet:
                    fail(request.replies, BrokerUnavailable(_CANCELLED))
                raise
            else:
                for request in packet:
                    resolve(request.replies, [next(replies) for _ in request.commands])
        # Not in a callback, which comes later: a request that is added before has to start another sender.
        self._senders.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    def _next_packet(self) -> list[Request]:
        packet: list[Request] = []
        size = 0
        while self._waiting and (not packet or size < MAX_PACKET_BYTES):
            request = self._waiting.popleft()
            if not request.replies.cancelled():
                packet.append(request)
                size += sum(map(len, request.commands))
        return packet


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Let a future raise a copy of an error: each caller adds its own traceback."""
    if not future.done():
        copy = type(error)(*error.args)
        copy.__cause__ = error
        future.set_exception(copy)


def resolve(future: asyncio.Future[Any], value: Any) -> None:
    """Set the result of a future, unless it is done or cancelled."""
    if not future.done():
        future.set_result(value)


# -- one connection


def prepare(connection: Any) -> bool:
    """Make a new connection ready for aexchange(). False: it has no socket, as with fakeredis, and needs threads."""
    if not isinstance(connection._sock, socket.socket):
        return False
    connection._sock.setblocking(False)
    connection.rtq_reader = hiredis.Reader(
        protocolError=redis_exceptions.InvalidResponse,
        replyError=connection._parser.parse_error,
        notEnoughData=_INCOMPLETE,
    )
    return True


async def aexchange(connection: Any, commands: Sequence[Command]) -> list[Any]:
    """Send commands over one connection and read a reply for each; errors are replies.

    A caller that cancels it has to drop the connection: replies may be on their way.
    """
    if not hasattr(connection, "rtq_reader"):
        return await asyncio.to_thread(exchange, connection, commands)
    if command_hooks:
        with hooked(commands):
            return await _exchange(connection, commands)
    return await _exchange(connection, commands)


async def _exchange(connection: Any, commands: Sequence[Command]) -> list[Any]:
    end: socket.socket = connection._sock
    await _send(end, b"".join(map(pack, commands)), connection.socket_timeout)
    reader = connection.rtq_reader
    replies: list[Any] = []
    while len(replies) < len(commands):
        reply = reader.gets()
        if reply is _INCOMPLETE:
            reader.feed(await _receive(end, connection.socket_timeout))
        elif isinstance(reply, redis_exceptions.ConnectionError):  # it loads its data, for instance
            raise reply
        else:
            replies.append(reply)
    return replies


async def _send(end: socket.socket, packet: bytes, seconds: float) -> None:
    left = memoryview(packet)
    while left:
        try:
            left = left[end.send(left) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            await _until(end, "writer", seconds)
        except ssl.SSLWantReadError:
            await _until(end, "reader", seconds)


async def _receive(end: socket.socket, seconds: float) -> bytes:
    while True:
        try:
            data = end.recv(_RECEIVE_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            await _until(end, "reader", seconds)
        except ssl.SSLWantWriteError:
            await _until(end, "writer", seconds)
        else:
            if not data:
                raise redis_exceptions.ConnectionError("Connection closed by server.")
            return data


async def _until(end: socket.socket, side: str, seconds: float) -> None:
    """Wait until the socket can be used as a "reader" or a "writer"."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bool] = loop.create_future()
    descriptor = end.fileno()
    getattr(loop, f"add_{side}")(descriptor, resolve, ready, True)
    timer = loop.call_later(seconds, resolve, ready, False)
    try:
        if not await ready:
            raise redis_exceptions.TimeoutError("Timeout reading from socket")
    finally:
        timer.cancel()
        getattr(loop, f"remove_{side}")(descriptor)
