"""The sleep of a supervisor's main thread, and all that ends it: signals, deaths of children, other threads."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress


class Wakeup:
    """Takes note of the signals that stop a worker. Needs the main thread, but for wake()."""

    def __init__(self) -> None:
        self.received: list[int] = []  # signals that are to stop the worker, in the order in which they came
        self._reader, self._writer = socket.socketpair()

    def listening(self) -> ExitStack:
        """Handlers that take note and end a sleep, until the stack is closed."""
        stack = ExitStack()
        for end in (self._reader, self._writer):
            end.setblocking(False)
            stack.callback(end.close)
        before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, before)

        handlers: dict[int, Callable[[int, object], None]] = {signum: self._note for signum in stopping_signals()}
        handlers[signal.SIGCHLD] = lambda signum, frame: None
        for signum, handler in handlers.items():
            stack.callback(signal.signal, signum, signal.signal(signum, handler))
        return stack

    def wake(self) -> None:
        """End a sleep. Any thread."""
        with suppress(OSError):  # it is awake, or over
            self._writer.send(b"\0")

    def sleep(self, seconds: float) -> None:
        """Until a signal comes, a child's death among them, or for so long."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        if ready:
            with suppress(BlockingIOError):
                while self._reader.recv(4096):
                    pass

    def _note(self, signum: int, frame: object) -> None:
        self.received.append(signum)


def stopping_signals() -> list[signal.Signals]:
    """The signals that stop a worker or a scheduler."""
    stopping = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # the terminal was closed, and there is no nohup
        stopping.append(signal.SIGHUP)
    return stopping
