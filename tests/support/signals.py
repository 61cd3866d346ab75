"""Signals that this process ignores, and what programs that it starts inherit of that."""

import signal
from contextlib import contextmanager


def stop_passing_on_ignored_signals():
    """Keep ignoring the signals that this process was started to ignore, but let programs that it starts heed them.

    Under nohup, or in the background of a script, signals are ignored (SIG_IGN), and programs inherit that. They do
    not inherit a handler.
    """
    for signum in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python itself ignores these two
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, _ignore)


@contextmanager
def ignored(signum):
    """Ignore a signal, in this process and in programs that it starts meanwhile."""
    before = signal.signal(signum, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signum, before)


def _ignore(signum, frame):
    pass
