"""The server of these tests is a master of a Cluster, which has our slot and no other."""

from urllib.parse import urlsplit

import pytest
from django.test import override_settings

from tests.support.fault_proxy import FaultProxy
from tests.support.redis_cluster import PrivateCluster, port_with_bus
from tests.support.redis_server import LEASE_SECONDS


@pytest.fixture(scope="session")
def proxy():
    """A proxy between the server and the brokers. The Cluster names it instead of the server."""
    with FaultProxy(port_with_bus()) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def cluster(proxy):
    """The Cluster of this session, of three masters."""
    with PrivateCluster(alone=proxy.server_port, announced=urlsplit(proxy.url).port) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def redis_server(cluster):
    """The master that has our slot."""
    return cluster.servers[0]


@pytest.fixture
def rtq_settings(redis, cluster):
    """Settings that name the other nodes."""
    with override_settings(RTQ={"REDIS": {"cluster": cluster.addresses[1:]}, "LEASE_SECONDS": LEASE_SECONDS}):
        yield
