"""A TCP proxy between broker and Redis that drops requests, replies and connections on demand."""

import selectors
import socket
import threading
from typing import NamedTuple


class Fault(NamedTuple):
    """What happens to the next request that contains `around`."""

    kind: str  # "before": it gets lost; "after": its reply does; "answer": it gets this one; "silence": none
    around: bytes
    answer: bytes = b""


class Proxy:
    """Forwards connections on loopback to one server. One thread serves them all."""

    def __init__(self, port):
        self._server = ("127.0.0.1", port)
        self._peers = {}  # each open socket -> the one on the other side
        self._cut_off = set()  # servers' sockets whose next reply gets lost
        self._fault = None
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wake_reader, self._wake_writer = socket.socketpair()
        for waiting in (self._listener, self._wake_reader):
            self._selector.register(waiting, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def arm(self, fault):
        """Let it happen once."""
        self._fault = fault

    @property
    def is_armed(self):
        return self._fault is not None

    def close(self):
        self._wake_writer.send(b"!")
        self._thread.join()

    def _serve(self):
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake_reader:
                    return self._shut()
                if key.fileobj is self._listener:
                    self._connect()
                elif key.fileobj in self._peers:  # else it was closed in this round
                    self._pass_on(key.fileobj)

    def _connect(self):
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
            self._selector.register(one, selectors.EVENT_READ, "client" if one is client else "server")

    def _pass_on(self, source):
        try:
            data = source.recv(1 << 20)
        except OSError:
            data = b""
        fault = self._fault_of(source, data)
        if not data or source in self._cut_off or (fault and fault.kind == "before"):
            self._close(source)
            return
        target = self._peers[source]
        if fault and fault.kind == "after":
            self._cut_off.add(target)
        if fault and fault.kind in ("answer", "silence"):
            target, data = source, fault.answer
        try:
            target.sendall(data)
        except OSError:
            self._close(source)

    def _fault_of(self, source, data):
        if self._fault is None or self._selector.get_key(source).data != "client" or self._fault.around not in data:
            return None
        fault, self._fault = self._fault, None
        return fault

    def _close(self, source):
        for end in (source, self._peers[source]):
            self._selector.unregister(end)
            self._cut_off.discard(end)
            del self._peers[end]
            end.close()

    def _shut(self):
        for end in list(self._peers):
            if end in self._peers:
                self._close(end)
        for end in (self._listener, self._wake_reader, self._wake_writer):
            end.close()
        self._selector.close()
