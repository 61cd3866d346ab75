"""Fixtures: the version before this one and this one, with the same project, Redis and database."""

import pytest
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from testproject.redis_server import PrivateRedis
from tests.markdown import ROOT
from tests.support.redis_server import Redis
from tests.upgrade.versions import Version, base, unpack


@pytest.fixture
def folder(tmp_path):
    """Where jobs leave notes and find gates."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def server():
    """A server of this test alone. The broker and the readers of this process use it, too."""
    with PrivateRedis() as server, override_settings(RTQ={"REDIS": server.url}):
        yield server
        get_broker().close()


@pytest.fixture
def client(server):
    with Redis.from_url(server.url, protocol=2) as client:
        yield client


@pytest.fixture
def new(folder, server):
    version = Version("new", ROOT, folder, server.url)
    yield version
    version.close()


@pytest.fixture(scope="session")
def old_sources(tmp_path_factory):
    """A folder with the version before."""
    return unpack(tmp_path_factory.mktemp("old"), base())


@pytest.fixture
def old(folder, server, old_sources):
    """The version before."""
    version = Version("old", old_sources, folder, server.url)
    yield version
    version.close()
