"""The clock of the Redis server."""

from tests.support.waiting import wait_until


def server_ms(redis):
    """The time of the server, in milliseconds since 1970."""
    seconds, micros = redis.time()
    return seconds * 1000 + micros // 1000


def minute_with_time_left(redis, seconds=5):
    """The present minute since 1970, of which at least so many seconds are left. Waits for the next one if needed."""
    wait_until(lambda: redis.time()[0] % 60 < 60 - seconds)
    return redis.time()[0] // 60
