"""A TCP proxy that counts the round trips and commands of a worker.

MONITOR and INFO count commands inside scripts, and cannot tell which commands were sent together. Here a round trip is
everything that is sent on a connection after its last reply, however many commands or packets that is.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from weakref import WeakKeyDictionary, WeakSet

import hiredis

from testproject.tcp_proxy import TCPProxy


class CountingProxy(TCPProxy):
    """Forwards everything, and counts it."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._readers: WeakKeyDictionary[socket.socket, hiredis.Reader] = WeakKeyDictionary()  # by client socket
        self._awaiting_reply: WeakSet[socket.socket] = WeakSet()  # client sockets that have sent and got no reply yet
        self._lock = threading.Lock()
        self._round_trips = 0
        self._commands: Counter[bytes] = Counter()

    def counted(self) -> tuple[int, Counter[bytes]]:
        """Round trips so far, and the commands in them; a script is counted by its SHA-1."""
        with self._lock:
            return self._round_trips, self._commands.copy()

    def forward(self, data: bytes, source: socket.socket, target: socket.socket) -> None:
        """Count it, and pass it on."""
        if self.is_client(source):
            self._count(source, data)
        else:
            self._awaiting_reply.discard(target)
        target.sendall(data)

    def _count(self, client: socket.socket, data: bytes) -> None:
        reader = self._readers.setdefault(client, hiredis.Reader())
        reader.feed(data)
        with self._lock:
            if client not in self._awaiting_reply:
                self._awaiting_reply.add(client)
                self._round_trips += 1
            while (command := reader.gets()) is not False:
                name = command[0].upper()
                self._commands[command[1] if name == b"EVALSHA" else name] += 1
