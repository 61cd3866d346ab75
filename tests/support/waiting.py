"""Waiting for something that happens in another thread or process."""

import time

PATIENCE = 40.0  # seconds: enough on a busy machine, and less than what anything falls back to


def wait_until(condition, seconds=PATIENCE):
    """Poll until `condition()` is true, and less often the longer it takes. The only sleep in the test suite."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, "it did not happen in time"
        time.sleep(min(max(waited / 20, 0.005), 0.02))
