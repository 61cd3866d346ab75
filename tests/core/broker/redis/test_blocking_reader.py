"""Waiting for a token, to the fraction of a millisecond."""

import select
import socket
import threading
import time

import pytest

from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.redis.speedups import FINE_SECONDS
from django_rtq.exceptions import BrokerUnavailable
from tests.support.jobs import QUEUE
from tests.support.waiting import PATIENCE, start_thread, wait_until


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
    if not came:
        select.select([reader._connection._sock], [], [], PATIENCE)  # the answer is here, and not read yet

    assert came or reader.wait(seconds)


def test_a_token_that_comes_later_ends_it_too(redis, broker, reader):
    timer = threading.Timer(0.05, redis.zadd, (broker.keys.of(QUEUE).due_signal, {"due": 0}))
    timer.start()

    assert reader.wait(PATIENCE) is True
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
    start_thread(wait).join(PATIENCE)

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
        elsewhere.setattr("django_rtq.core.broker.redis.blocking_reader.is_current", lambda connection: False)
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


def test_a_claim_that_is_refused_has_no_reply(redis, broker, reader):
    for claim in (("ECHO",), ("EVALSHA", "0" * 40, 0)):
        redis.zadd(broker.keys.of(QUEUE).due_signal, {"due": 0})

        assert reader.wait_and_claim(claim) is None

    assert reader.wait(0) is False


def test_a_claim_that_blocks_looks_up_from_time_to_time(redis, broker, reader):
    looks = []

    def look():
        looks.append(1)
        if len(looks) == 3:
            redis.zadd(broker.keys.of(QUEUE).due_signal, {"due": 0})

    assert reader.wait_and_claim(("ECHO", "claimed"), slice_seconds=0.01, on_slice=look) == b"claimed"
    assert len(looks) >= 3


def test_what_a_look_raises_ends_the_wait_and_the_connection(redis, reader):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reader.wait_and_claim(("ECHO", "claimed"), slice_seconds=0.01, on_slice=stop)

    assert not reader.is_waiting
    wait_until(lambda: not [c for c in redis.client_list() if c["name"] == "rtq:scheduler"])


def test_a_claim_does_not_go_on_blocking_at_a_former_master(reader, monkeypatch):
    def fail_over():
        monkeypatch.setattr("django_rtq.core.broker.redis.blocking_reader.is_current", lambda connection: False)

    with pytest.raises(BrokerUnavailable, match="another server is the master"):
        reader.wait_and_claim(("ECHO", "claimed"), slice_seconds=0.01, on_slice=fail_over)


def test_a_server_that_holds_a_read_for_too_long_is_given_up(reader, monkeypatch):
    reader.wait(0)
    monkeypatch.setattr(reader, "_block_seconds", -60.0)

    with pytest.raises(BrokerUnavailable, match="in time"):
        reader.wait_and_claim(("ECHO", "claimed"), slice_seconds=0.01)


def test_the_kernel_watches_connections_that_block(reader):
    reader.wait(0)

    open_socket = reader._connection._sock
    assert open_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert open_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
