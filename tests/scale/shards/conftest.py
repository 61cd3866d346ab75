"""Fixtures: a project with two shards, each on a server of its own."""

import threading

import pytest

from django_rtq.core.broker.brokers import close_brokers
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.scale.placement import shard_for
from testproject.redis_server import PrivateRedis
from tests.core.worker.conftest import databases_of_the_session, journal  # noqa: F401
from tests.support.redis_server import LEASE_SECONDS, Redis
from tests.support.shard_servers import on_servers


@pytest.fixture(scope="session")
def servers():
    """The servers of shard 0 and 1."""
    with PrivateRedis(appendonly=True) as first, PrivateRedis(appendonly=True) as second:
        yield [first, second]


@pytest.fixture
def clients(servers):
    """A client of each server, all empty."""
    clients = [Redis.from_url(server.url, protocol=2) for server in servers]
    for client in clients:
        client.flushall()
    yield clients
    for client in clients:
        client.close()


@pytest.fixture
def shards(servers, clients):
    """Settings with both."""
    with on_servers([server.url for server in servers], LEASE_SECONDS=LEASE_SECONDS):
        yield clients
        close_brokers()


@pytest.fixture
def patient_clients(monkeypatch):
    """The Redis clients that were used in other threads than those that a page waits for briefly."""
    found, exchange = [], RedisClient._exchange

    def noted(self, commands, **options):
        if not threading.current_thread().name.startswith("rtq-shard-"):
            found.append(self)
        return exchange(self, commands, **options)

    monkeypatch.setattr(RedisClient, "_exchange", noted)
    return found


def client_of(shard, numbers=(0, 1), start=0):
    """The name of a client whose jobs go to this shard."""
    return next(name for i in range(start, 1000) if shard_for(f"client {(name := f'shop-{i}')}", numbers) == shard)


def waiting(client, queue="default"):
    """How many jobs a server has of a queue."""
    return client.hlen(f"{{rtq:{queue}}}:jobs")
