"""The server of these tests is a master of a Cluster, which has our slot and no other."""

from urllib.parse import urlsplit

import pytest
from django.test import override_settings

from tests.support.fault_proxy import FaultProxy
from tests.support.redis_cluster import PrivateCluster, ask, owner_seen_by
from tests.support.redis_server import LEASE_SECONDS
from tests.support.waiting import wait_until


@pytest.fixture(scope="session")
def cluster():
    """The Cluster of this session, of three masters."""
    with PrivateCluster(alone=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def redis_server(cluster):
    """The master that has our slot."""
    return cluster.servers[0]


@pytest.fixture(scope="session")
def proxy(cluster, redis_server):
    """A proxy between this server and the brokers: the Cluster names it instead."""
    with FaultProxy(redis_server.port) as proxy:
        port = urlsplit(proxy.url).port
        ask(redis_server, "CONFIG SET", "cluster-announce-port", port)
        wait_until(lambda: all(owner_seen_by(server) == port for server in cluster.servers))
        yield proxy


@pytest.fixture
def rtq_settings(redis, cluster):
    """Settings that name the other nodes."""
    with override_settings(RTQ={"REDIS": {"cluster": cluster.addresses[1:]}, "LEASE_SECONDS": LEASE_SECONDS}):
        yield
