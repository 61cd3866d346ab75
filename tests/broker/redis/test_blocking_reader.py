"""Waiting for a token, to the fraction of a millisecond."""

import threading
import time

import pytest

from django_rtq.broker.redis.blocking_reader import BlockingReader
from django_rtq.broker.redis.speedups import FINE_SECONDS
from django_rtq.exceptions import BrokerUnavailable
from tests.support.jobs import QUEUE
from tests.support.waiting import wait_until


@pytest.fixture
def reader(broker):
    reader = BlockingReader(
        broker.connection_settings, [broker.keys.of(QUEUE).due_signal], role="scheduler", block_seconds=60
    )
    yield reader
    reader.close()


@pytest.mark.parametrize("seconds", [0.0, FINE_SECONDS / 2, FINE_SECONDS, 3.7 * FINE_SECONDS])
def test_it_never_ends_too_early(reader, seconds):
    started = time.monotonic()

    assert reader.wait(seconds) is False
    assert time.monotonic() - started >= seconds


@pytest.mark.parametrize("seconds", [FINE_SECONDS, 30.0])
def test_a_token_ends_it(redis, broker, reader, seconds):
    redis.zadd(broker.keys.of(QUEUE).due_signal, {"due": 0})
    came = reader.wait(0)
    wait_until(lambda: not redis.exists(broker.keys.of(QUEUE).due_signal))  # the answer is on its way, or was here

    assert came or reader.wait(seconds)


def test_a_token_that_comes_later_ends_it_too(redis, broker, reader):
    timer = threading.Timer(0.05, redis.zadd, (broker.keys.of(QUEUE).due_signal, {"due": 0}))
    timer.start()

    assert reader.wait(30) is True
    timer.join()


def test_it_can_be_ended_from_another_thread(reader):
    """The socket stays with the thread that reads: the number of a closed one may at once be that of another."""
    ended = threading.Event()

    def wait():
        with pytest.raises(BrokerUnavailable):
            reader.wait()
        ended.set()

    reader.wait(0)
    socket = reader._connection._sock
    reader.interrupt()
    assert socket.fileno() > 0
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(5)

    assert ended.is_set()
    assert socket.fileno() == -1


def test_it_tells_each_time_it_connects(redis, broker, monkeypatch):
    told = []
    key = broker.keys.of(QUEUE).due_signal
    reader = BlockingReader(
        broker.connection_settings, [key], role="worker-wait", block_seconds=60, on_connect=lambda: told.append(1)
    )
    assert reader.wait(0) is False
    assert reader.wait(0) is False
    assert told == [1]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("django_rtq.broker.redis.blocking_reader.is_current", lambda connection: False)
        assert reader.wait(0) is False
    assert told == [1, 1]
    reader.close()
    assert reader.wait(0) is False
    reader.close()

    assert told == [1, 1, 1]


def test_who_waits_already_asks_for_no_second_token(redis, broker, reader):
    key = broker.keys.of(QUEUE).due_signal
    assert reader.wait(0) is False
    for word in (b"first", b"second"):
        redis.zadd(key, {"due": 0})

        assert reader.wait_and_claim(("ECHO", word)) == word

    assert not reader.is_waiting
    assert redis.zcard(key) == 0
