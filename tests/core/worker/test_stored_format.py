"""A worker that finds data of another format in Redis ends with a sentence, at its start and later."""

from tests.support.waiting import wait_until


def assert_ended(worker, sentence):
    assert worker.wait() == 1
    assert sentence in worker.log
    assert "Traceback" not in worker.log
    assert "cannot reach Redis" not in worker.log


def test_a_worker_does_not_start_on_data_of_another_format(redis, rtq_worker):
    redis.set("rtq:format", "3 abc")
    try:
        assert_ended(rtq_worker(is_ready=False), "Redis holds data in format 3 (key rtq:format)")
    finally:
        redis.delete("rtq:format")


def test_a_worker_does_not_start_on_keys_of_another_type(redis, rtq_worker):
    redis.zadd("{rtq:default}:finished", {"of a development version": 1})
    try:
        assert_ended(rtq_worker(is_ready=False), "Redis holds a zset in the key {rtq:default}:finished")
    finally:
        redis.delete("{rtq:default}:finished")


def test_a_worker_stops_when_others_have_changed_the_format(redis, rtq_worker):
    worker = rtq_worker(LEASE_SECONDS=2)
    redis.set("rtq:format", "3 abc")
    try:
        assert_ended(worker, "Redis holds data in format 3 (key rtq:format)")
    finally:
        redis.delete("rtq:format")


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
