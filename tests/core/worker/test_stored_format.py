"""A worker that finds data of another format in Redis ends with a sentence, at its start and later."""

import pytest

from tests.support.waiting import wait_until

FORMAT = ("rtq:format", "3 abc", "Redis holds data in format 3 (key rtq:format)")
KIND = ("{rtq:default}:finished", {"of a development version": 1}, "Redis holds a zset in the key {rtq:default}:fin")


@pytest.mark.parametrize(
    ("key", "value", "sentence", "runs"),
    [(*FORMAT, False), (*KIND, False), (*FORMAT, True)],
    ids=["another format", "keys of another type", "changed while it runs"],
)
def test_a_worker_ends_on_data_of_another_format(redis, rtq_worker, key, value, sentence, runs):
    worker = rtq_worker(LEASE_SECONDS=2) if runs else None
    _ = redis.set(key, value) if isinstance(value, str) else redis.zadd(key, value)
    try:
        worker = worker or rtq_worker(is_ready=False)
        assert worker.wait() == 1
    finally:
        redis.delete(key)
    assert sentence in worker.log
    assert "Traceback" not in worker.log
    assert "cannot reach Redis" not in worker.log


def test_a_refused_command_is_not_called_an_outage(redis, rtq_worker):
    worker = rtq_worker(LEASE_SECONDS=2)
    redis.delete("{rtq:default}:signed_on")
    redis.set("{rtq:default}:signed_on", "x")
    try:
        wait_until(lambda: "was refused by Redis, retrying: Redis refused a command" in worker.log)
    finally:
        redis.delete("{rtq:default}:signed_on")
    worker.stop()

    assert "cannot reach Redis" not in worker.log
