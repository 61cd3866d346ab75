"""Receivers that hear signals for a while."""

from contextlib import contextmanager


@contextmanager
def receiving(receiver, *signals):
    """Meanwhile it receives these signals."""
    for signal in signals:
        signal.connect(receiver)
    try:
        yield
    finally:
        for signal in signals:
            signal.disconnect(receiver)
