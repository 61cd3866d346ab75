"""Sends commands over a connection of redis-py from a coroutine, without blocking its event loop.

The connection is the same as for threads: it knows TLS, Unix sockets, Sentinels and credentials. Only sending and
reading is done here, on its socket, so the connection belongs to no event loop: loops may come and go.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import hiredis
from redis import exceptions as redis_exceptions

from django_rtq.core.broker.redis.client import exchange
from django_rtq.core.broker.redis.commands import Command, command_hooks, hooked
from django_rtq.core.broker.redis.speedups import pack

_RECEIVE_BYTES = 65_536
_INCOMPLETE = object()  # instead of a reply


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


def resolve(future: asyncio.Future[Any], value: Any) -> None:
    """Set the result of a future, unless it is done or cancelled."""
    if not future.done():
        future.set_result(value)
