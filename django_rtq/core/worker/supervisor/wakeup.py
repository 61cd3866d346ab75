"""The sleep of the supervisor's main thread. Ended by signals, exits of processes and other threads."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress


class Wakeup:
    """Collects stop signals, and sleeps until one comes. For the main thread, except wake()."""

    def __init__(self) -> None:
        self.signals: list[int] = []  # stop signals, in the order of their arrival
        self._reader, self._writer = socket.socketpair()

    def install_handlers(self) -> ExitStack:
        """Install the signal handlers until the stack is closed."""
        stack = ExitStack()
        for end in (self._reader, self._writer):
            end.setblocking(False)
            stack.callback(end.close)
        before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        stack.callback(signal.set_wakeup_fd, before)

        handlers: dict[int, Callable[[int, object], None]] = {signum: self._on_signal for signum in stop_signals()}
        handlers[signal.SIGCHLD] = lambda signum, frame: None
        for signum, handler in handlers.items():
            stack.callback(signal.signal, signum, signal.signal(signum, handler))
        return stack

    def wake(self) -> None:
        """End a sleep. Any thread."""
        with suppress(OSError):  # the buffer is full, so it wakes anyway; or it is closed
            self._writer.send(b"\0")

    def sleep(self, seconds: float) -> bool:
        """Sleep for so long, or until a signal (SIGCHLD as well) or wake(). Returns whether it was woken."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        if ready:
            with suppress(BlockingIOError):
                while self._reader.recv(4096):
                    pass
        return bool(ready)

    def _on_signal(self, signum: int, frame: object) -> None:
        self.signals.append(signum)


def stop_signals() -> list[signal.Signals]:
    """The signals that stop a worker or a scheduler."""
    stop = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # sent when the terminal closes; nohup ignores it
        stop.append(signal.SIGHUP)
    return stop
