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
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import hiredis
import redis
from redis import exceptions as redis_exceptions

from django_rtq.core.broker.redis.client import (
    MOVING_SECONDS,
    connect_error,
    exchange,
    has_moved,
    in_settings_of,
    is_current,
    mended,
    note_loss,
    translate_error,
    translated,
)
from django_rtq.core.broker.redis.commands import Command, Steps, Token, arun_steps, checked, command_hooks, hooked
from django_rtq.core.broker.redis.speedups import FewIdleConnections, pack
from django_rtq.exceptions import BrokerError, BrokerUnavailable

T = TypeVar("T")

MAX_PACKETS = 4  # of one event loop that wait for replies, each on a connection of its own
MAX_PACKET_BYTES = 1 << 20  # unless one call has more
MAX_LISTS = 100  # of one connection: each token that comes makes Redis go through all of them
BLOCK_SECONDS = 30.0
THREAD_SECONDS = 1.0  # of a read that cannot be cancelled
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
    """Sends commands that may run twice, and waits for tokens in lists, for coroutines of any event loop."""

    def __init__(self, pool: redis.ConnectionPool, blocking_pool: redis.ConnectionPool) -> None:
        self._connections, self._blocking = AsyncConnections(pool), AsyncConnections(blocking_pool)
        self._outboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Outbox] = WeakKeyDictionary()
        self._readers: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Reader]] = WeakKeyDictionary()

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
        self._blocking.close()

    async def wait(self, token: Token, seconds: float, new_token: Callable[[], Token]) -> bool:
        """Wait until there is a token, for `seconds` at most. Returns whether it came. It stays for others that wait.

        Waits of one event loop share a connection, which blocks on many lists. `new_token`: makes a token of the
        caller's own, whose command always puts it. Raises BrokerError.
        """
        loop = asyncio.get_running_loop()
        readers = self._readers.setdefault(loop, [])
        for reader in readers:
            if len(reader.waits) < MAX_LISTS or token.key in reader.waits:
                break
        else:
            reader = _Reader(self._blocking, self, new_token())
            readers.append(reader)
        came = reader.add(token)
        timer = loop.call_later(seconds, resolve, came, False)
        try:
            return await came
        finally:
            timer.cancel()
            reader.remove(token.key, came)
            if not reader.waits and reader in readers:
                readers.remove(reader)


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


class _Reader:
    """Waits for up to MAX_LISTS tokens, and for one of its own that ends the read when another list is to be added.

    A token that was read is put back at once, for others that wait in other processes. So a read is ended by a token,
    too, when nobody waits any more: a connection that is closed may take one along.
    """

    def __init__(self, connections: AsyncConnections, client: AsyncRedisClient, own: Token) -> None:
        self._connections, self._client, self._own = connections, client, own
        self.waits: dict[bytes, set[asyncio.Future[bool]]] = {}
        self._read: dict[bytes, Token] = {}  # the lists of the read that blocks
        self._added: dict[bytes, Token] = {}  # to read since
        self._puts: dict[asyncio.Future[Any], Token] = {}  # tokens that are on their way back
        self._task: asyncio.Task[None] | None = None

    def add(self, token: Token) -> asyncio.Future[bool]:
        """Wait for a token, too."""
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bool] = loop.create_future()
        self.waits.setdefault(token.key, set()).add(came)
        if token.key not in self._read:
            if self._read and not self._added:
                self._put(self._own)
            self._added[token.key] = token
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        return came

    def remove(self, key: bytes, came: asyncio.Future[bool]) -> None:
        """Wait no more. The read ends when it was the last."""
        waiting = self.waits.get(key)
        if waiting is not None:
            waiting.discard(came)
            if not waiting:
                del self.waits[key]
        if not self.waits and self._read:
            self._put(self._own)

    async def _run(self) -> None:
        try:
            while self.waits or self._puts:
                if self.waits:
                    await self._read_once()
                else:
                    await asyncio.wait(self._puts)
        except asyncio.CancelledError:  # the event loop ends
            left = [token.put for token in (*self._read.values(), *self._puts.values())]
            with suppress(BrokerError):
                await self._client.execute_each(left)
            raise
        except Exception as error:  # noqa: BLE001 - each caller gets it
            for came in [came for waiting in self.waits.values() for came in waiting]:
                fail(came, error)
            self.waits.clear()
            self._added = {}
        finally:
            self._read = {}

    async def _read_once(self) -> None:
        tokens = self._read | self._added
        self._read, self._added = {key: tokens[key] for key in self.waits}, {}
        seconds = THREAD_SECONDS if self._connections.needs_threads else BLOCK_SECONDS
        (reply,) = await self._connections.round_trip([("BLPOP", *self._read, self._own.key, seconds)])
        if has_moved(self._connections.pool, reply):
            await asyncio.sleep(MOVING_SECONDS)
            return
        if isinstance(reply, Exception):
            raise translate_error(reply, None, in_settings_of(self._connections.pool)) from reply
        if reply is not None and reply[0] != self._own.key:
            token = self._read.pop(reply[0])
            self._put(token)
            for came in self.waits.pop(token.key, ()):
                resolve(came, True)

    def _put(self, token: Token) -> None:
        put = self._client.post([token.put])
        self._puts[put] = token
        put.add_done_callback(self._forget_put)

    def _forget_put(self, put: asyncio.Future[Any]) -> None:
        del self._puts[put]
        if not put.cancelled():
            put.exception()  # without a connection the read ends, too


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
