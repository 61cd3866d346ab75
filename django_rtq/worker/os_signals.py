"""The signal handlers of a worker process. A job that replaces them does so for itself; forks do not inherit them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

try:
    # signal.getsignal() makes an enum of its answer, which takes 50 times as long.
    from _signal import getsignal  # type: ignore[import-not-found]
except ImportError:  # another Python
    from signal import getsignal

Handler = Callable[[int, Any], None]

_OURS = __name__.rpartition(".")[0]
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM)


class OwnHandlers:
    """Which handlers this process has, once it was told. For its main thread."""

    def __init__(self) -> None:
        self._handlers: list[tuple[int, Handler]] = []

    def install(self, handlers: Mapping[int, Handler]) -> None:
        """Set these handlers, for as long as the process lives, and none of them in what it forks."""
        self._handlers = list(handlers.items())
        self.restore()
        _forget_in_forks()

    def restore(self) -> None:
        """Set those again that a job has replaced. This is on the way of every job: a fraction of a microsecond."""
        for signum, handler in self._handlers:
            if getsignal(signum) is not handler:
                signal.signal(signum, handler)


def ignore(signum: int, frame: object) -> None:
    """A handler that does nothing. Unlike SIG_IGN, programs that a job starts do not inherit it."""


def _forget_in_forks() -> None:
    """Let what a job forks, with multiprocessing for instance, have the default handlers in place of ours.

    Signals are held back until it has: one that came earlier would be noted by our handler, and lost.
    """
    before = threading.local()

    def hold_back() -> None:
        before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def let_through() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)

    def forget() -> None:
        signal.set_wakeup_fd(-1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum in _SIGNALS:
            if _is_ours(getsignal(signum)):
                signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
        let_through()

    os.register_at_fork(before=hold_back, after_in_parent=let_through, after_in_child=forget)


def _is_ours(handler: object) -> bool:
    return str(getattr(handler, "__module__", "")).startswith(_OURS)
