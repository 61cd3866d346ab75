"""Signal dispositions of processes that tests start."""

import signal
import threading
from contextlib import contextmanager


@contextmanager
def heeded_signals():
    """A process that is started in here ignores no signal, though the tests do: under nohup, or in the background."""
    ignored = []
    if threading.current_thread() is threading.main_thread():
        stopping = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
        ignored = [signum for signum in stopping if signal.getsignal(signum) is signal.SIG_IGN]
    for signum in ignored:
        signal.signal(signum, signal.SIG_DFL)
    try:
        yield
    finally:
        for signum in ignored:
            signal.signal(signum, signal.SIG_IGN)
