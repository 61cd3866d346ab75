"""A TCP proxy on loopback, between Redis and whatever is tested or measured."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class TCPProxy:
    """Forwards connections to one server. A context manager; one thread serves all connections.

    A subclass may override `forward()`, which runs in that thread.
    """

    def __init__(self, port: int) -> None:
        self.server_port = port
        self._server = ("127.0.0.1", port)
        self._peers: dict[socket.socket, socket.socket] = {}  # each open socket -> the one on the other side
        self._clients: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
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
        """The URL of the server by way of this proxy."""
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def forward(self, data: bytes, source: socket.socket, target: socket.socket) -> None:
        """Pass on what was read from a socket. An OSError closes the connection."""
        target.sendall(data)

    def is_client(self, end: socket.socket) -> bool:
        """Whether it is the client's side of a connection."""
        return end in self._clients

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._stop_reader:
                    return
                if key.fileobj is self._listener:
                    self._connect()
                elif key.fileobj in self._peers:  # else it was closed in this pass
                    self._read(key.fileobj)

    def _connect(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._server)
        except OSError:  # the server is away
            client.close()
            return
        self._clients.add(client)
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _read(self, source: socket.socket) -> None:
        try:
            data = source.recv(1 << 20)
            if data:
                self.forward(data, source, self._peers[source])
        except OSError:
            data = b""
        if not data:
            self._close(source, self._peers[source])

    def _close(self, *ends: socket.socket) -> None:
        for end in ends:
            self._selector.unregister(end)
            self._clients.discard(end)
            del self._peers[end]
            end.close()
