"""Waits of coroutines for tokens in lists: those of one event loop share a connection, which blocks on many lists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import redis

from django_rtq.core.broker.redis.async_client import AsyncConnections, AsyncRedisClient, fail, resolve
from django_rtq.core.broker.redis.client import MOVING_SECONDS, has_moved, in_settings_of, translate_error
from django_rtq.core.broker.redis.commands import Token
from django_rtq.exceptions import BrokerError

MAX_LISTS = 100  # of one connection: each token that comes makes Redis go through all of them
BLOCK_SECONDS = 30.0
THREAD_SECONDS = 1.0  # of a read that cannot be cancelled


class TokenWaits:
    """Waits for tokens. Coroutines of any event loop may use it."""

    def __init__(self, pool: redis.ConnectionPool, client: AsyncRedisClient) -> None:
        self._connections, self._client = AsyncConnections(pool), client
        self._readers: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Reader]] = WeakKeyDictionary()

    async def wait(self, token: Token, seconds: float, new_token: Callable[[], Token]) -> bool:
        """Wait until there is a token, for `seconds` at most. Returns whether it came. It stays for others that wait.

        `new_token`: makes a token of the caller's own, whose command always puts it. Raises BrokerError.
        """
        loop = asyncio.get_running_loop()
        readers = self._readers.setdefault(loop, [])
        for reader in readers:
            if len(reader.waits) < MAX_LISTS or token.key in reader.waits:
                break
        else:
            reader = _Reader(self._connections, self._client, new_token())
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

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close()


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
