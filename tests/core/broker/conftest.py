"""A server that tests may fill as they like, and what settings may name beside it."""

import sys
import types

import pytest
import redis

from testproject.redis_server import PrivateRedis
from tests.support.jobs import QUEUE


@pytest.fixture
def keys(broker):
    """Those of the queue of most tests."""
    return broker.keys.of(QUEUE)


@pytest.fixture
def limits(readers):
    """The limits of queues and clients, as people change them."""
    return readers.clients.limits


@pytest.fixture
def hour(redis):
    """The present one. A test may end in the next."""
    return redis.time()[0] // 3600


@pytest.fixture(scope="session")
def server():
    """A server beside the one that brokers use: what is in it is nobody's business."""
    with PrivateRedis(unix_socket=True) as server:
        yield server


@pytest.fixture
def empty(server):
    """The same server, without any keys."""
    with redis.Redis(port=server.port) as client:
        client.flushall()
    return server


@pytest.fixture
def factory(monkeypatch):
    """Makes an object importable; gives its dotted path."""

    def register(thing):
        module = types.ModuleType("rtq_test_factories")
        module.make = thing
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return "rtq_test_factories.make"

    return register
