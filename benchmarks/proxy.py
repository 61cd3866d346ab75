"""A TCP proxy on loopback that counts round trips and commands of a worker.

MONITOR and INFO count commands inside scripts, and cannot tell which commands were sent together. Here a round trip is
everything that is sent on a connection after its last reply, however many commands or packets that is.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections import Counter

import hiredis


class CountingProxy:
    """Forwards to one server. A context manager; one thread serves all connections."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._readers: dict[socket.socket, hiredis.Reader] = {}  # by client socket
        self._awaiting_reply: set[socket.socket] = set()  # client sockets that have sent and got no reply yet
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._round_trips = 0
        self._commands: Counter[bytes] = Counter()

    def __enter__(self) -> CountingProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stop_reader, self._stop_writer = socket.socketpair()
        for end in (self._listener, self._stop_reader):
            self._selector.register(end, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop_writer.send(b"!")
        self._thread.join()
        for end in (self._listener, self._stop_reader, self._stop_writer, *self._peers):
            end.close()
        self._selector.close()

    @property
    def url(self) -> str:
        """The URL for the worker."""
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def counted(self) -> tuple[int, Counter[bytes]]:
        """Round trips so far, and the commands in them; a script is counted by its SHA-1."""
        with self._lock:
            return self._round_trips, self._commands.copy()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._stop_reader:
                    return
                if key.fileobj is self._listener:
                    self._connect()
                elif key.fileobj in self._peers:  # else it was closed in this pass
                    self._pass_on(key.fileobj)

    def _connect(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
        self._readers[client] = hiredis.Reader()
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, source: socket.socket) -> None:
        target = self._peers[source]
        try:
            data = source.recv(1 << 16)
            if data and source in self._readers:
                self._count(source, data)
            elif data:
                self._awaiting_reply.discard(target)
            if data:
                target.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._close(source, target)

    def _count(self, client: socket.socket, data: bytes) -> None:
        reader = self._readers[client]
        reader.feed(data)
        with self._lock:
            if client not in self._awaiting_reply:
                self._awaiting_reply.add(client)
                self._round_trips += 1
            while (command := reader.gets()) is not False:
                name = command[0].upper()
                self._commands[command[1] if name == b"EVALSHA" else name] += 1

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            self._selector.unregister(end)
            self._peers.pop(end, None)
            self._readers.pop(end, None)
            self._awaiting_reply.discard(end)
            end.close()
