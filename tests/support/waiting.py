"""Waiting for something that happens in another thread or process."""

import time


def wait_until(condition, seconds=10.0):
    """Poll until `condition()` is true. The only sleep in the test suite."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
