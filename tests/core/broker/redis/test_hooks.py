"""Hooks around the commands that are sent past redis.Redis.execute_command."""

from contextlib import contextmanager

import pytest

from django_rtq.core.broker.redis.blocking_reader import BlockingReader
from django_rtq.core.broker.redis.commands import Token, command_hooks
from django_rtq.exceptions import BrokerUnavailable
from tests.support.jobs import QUEUE, claim, claimed_job, queued_job, settlement


@pytest.fixture
def seen():
    """What a hook sees: names at the beginning of each round trip, and None or the error at its end."""
    seen = []

    @contextmanager
    def hook(names):
        error = None
        try:
            yield
        except Exception as raised:
            error = raised
            raise
        finally:
            seen.append((names, error and type(error).__name__))

    command_hooks.append(hook)
    yield seen
    command_hooks.remove(hook)


def test_a_hook_is_told_the_names_of_the_commands(broker, seen):
    broker.redis.execute([("PING",), (b"EXISTS", "x")])

    assert seen == [(["PING", "EXISTS"], None)]


def test_scripts_have_their_own_names(broker, seen):
    broker.register_queues([QUEUE])
    seen.clear()
    queued_job(broker)
    assert seen == [(["EVALSHA enqueue"], None)]

    claim(broker)
    done = claimed_job(broker, worker="w3")
    seen.clear()
    broker.claim("w3", [QUEUE], 1, settlements={QUEUE: settlement("ack", done)})
    assert seen == [(["EVALSHA claim"], None)]


def test_a_blocking_read_is_seen_as_a_whole(broker, seen):
    reader = BlockingReader(broker.connection_settings, [b"rtq:tokens"], role="worker-wait", block_seconds=0.1)
    try:
        assert not reader.wait()
    finally:
        reader.close()
    broker.waits.wait(Token(b"rtq:list", ()), 0.1)

    assert seen == [(["BZPOPMIN"], None), (["BLMOVE"], None)]


def test_a_hook_sees_that_the_connection_was_lost(redis, broker, seen):
    queued_job(broker)
    claim(broker)
    seen.clear()
    redis.drop_connection("after")

    with pytest.raises(BrokerUnavailable):
        broker.claim("w2", [QUEUE], 1)

    ((names, error),) = seen
    assert (names, error) == (["EVALSHA claim"], "ConnectionError")


@pytest.mark.parametrize("where", ["call", "enter", "exit"])
def test_a_hook_that_fails_is_logged_and_loses_no_reply(broker, caplog, where):
    @contextmanager
    def broken():
        if where == "enter":
            raise RuntimeError("broken hook")
        yield
        raise RuntimeError("broken hook")

    def hook(names):
        if where == "call":
            raise RuntimeError("broken hook")
        return broken()

    command_hooks.append(hook)
    try:
        assert broker.redis.execute_one(("ECHO", "mine")) == b"mine"
    finally:
        command_hooks.remove(hook)

    assert "a hook of Redis commands failed" in caplog.text
