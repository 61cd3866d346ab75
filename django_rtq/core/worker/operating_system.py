"""What workers ask of the operating system: signals, and the memory of a process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

try:
    # signal.getsignal() converts its result to an enum, which takes 50 times as long.
    from _signal import getsignal  # type: ignore[import-not-found]
except ImportError:  # not CPython
    from signal import getsignal

Handlers = Sequence[tuple[int, Callable[[int, Any], None]]]

_OURS = __name__.rpartition(".")[0]
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM)


def memory_bytes(pid: int | str = "self") -> int | None:
    """The resident memory of a process, in bytes. None: the system is not Linux, or the process is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def install_handlers(handlers: Handlers) -> None:
    """Install these handlers for the life of the process. Its forks get the default handlers. For the main thread."""
    restore_handlers(handlers)
    _reset_in_forks()


def restore_handlers(handlers: Handlers) -> None:
    """Restore handlers that a job has replaced. Called after every job: takes a fraction of a microsecond."""
    for signum, handler in handlers:
        if getsignal(signum) is not handler:
            signal.signal(signum, handler)


def stop_signals() -> list[signal.Signals]:
    """The signals that stop a worker or a scheduler."""
    stop = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # sent when the terminal closes; nohup ignores it
        stop.append(signal.SIGHUP)
    return stop


def ignore_signal(signum: int, frame: object) -> None:
    """A handler that does nothing. Unlike SIG_IGN, it is not inherited by programs that a job starts."""


def _reset_in_forks() -> None:
    """Restore the default handlers in forks of a job (multiprocessing).

    Signals are blocked meanwhile: our handler would swallow them in the fork.
    """
    before = threading.local()

    def block() -> None:
        before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)

    def reset_handlers() -> None:
        signal.set_wakeup_fd(-1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum in _SIGNALS:
            if str(getattr(getsignal(signum), "__module__", "")).startswith(_OURS):
                signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
        unblock()

    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=reset_handlers)
