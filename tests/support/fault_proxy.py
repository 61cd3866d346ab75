"""A TCP proxy between broker and Redis that drops requests, replies and connections on demand."""

from collections import Counter
from typing import NamedTuple
from weakref import WeakSet

from testproject.tcp_proxy import TCPProxy


class Fault(NamedTuple):
    """What happens to the next request that contains `around`."""

    kind: str  # "before": it gets lost; "after": its reply does; "answer": it gets this one; "silence": none
    around: bytes
    answer: bytes = b""


class FaultProxy(TCPProxy):
    """Forwards everything but the one request that a fault is for."""

    def __init__(self, port):
        super().__init__(port)
        self._fault = None
        self._cut_off = WeakSet()  # servers' sockets whose next reply gets lost

    def arm(self, fault):
        """Let it happen once."""
        self._fault = fault

    @property
    def is_armed(self):
        return self._fault is not None

    def forward(self, data, source, target):
        fault = self._take_fault(data) if self.is_client(source) else None
        kind = fault and fault.kind
        if kind == "before" or source in self._cut_off:
            raise ConnectionResetError
        if kind == "after":
            self._cut_off.add(target)
        if kind in ("answer", "silence"):
            source.sendall(fault.answer)
        else:
            target.sendall(data)

    def _take_fault(self, data):
        if self._fault is None or self._fault.around not in data:
            return None
        fault, self._fault = self._fault, None
        return fault


class LossyProxy(TCPProxy):
    """Loses replies and requests at random: most with the connection, some in silence."""

    def __init__(self, port, dice):
        super().__init__(port)
        self._dice = dice
        self._silent = WeakSet()  # sockets from which nothing is passed on any more
        self.is_lossy = True
        self.counts = Counter()

    def forward(self, data, source, target):
        number = self._dice.randrange(2000) if self.is_lossy else -1
        what = "request" if self.is_client(source) else "reply"
        if source in self._silent:
            return
        if number in (0, 1, 2):
            self.counts[f"lost {what}"] += 1
            raise ConnectionResetError
        if number == 3 and not self._dice.randrange(10):
            self.counts[f"unanswered {what}"] += 1
            self._silent.add(source)
            return
        target.sendall(data)
