"""Waiting for something that happens in another thread or process."""

import threading
import time

PATIENCE = 40.0  # seconds: enough on a busy machine, and less than what anything falls back to


def wait_until(condition, seconds=PATIENCE):
    """Poll until `condition()` is true, and less often the longer it takes. The only sleep in the test suite."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, "it did not happen in time"
        time.sleep(min(max(waited / 20, 0.005), 0.02))


def start_thread(target, *arguments):
    """Call it in a thread, which ends with the process at the latest."""
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def server_ms(redis):
    """The time of the server, in milliseconds since 1970."""
    seconds, micros = redis.time()
    return seconds * 1000 + micros // 1000


def minute_with_time_left(redis, seconds=5):
    """The present minute since 1970, of which at least so many seconds are left. Waits for the next one if needed."""
    wait_until(lambda: redis.time()[0] % 60 < 60 - seconds)
    return redis.time()[0] // 60
