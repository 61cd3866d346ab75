"""Fixtures: the version before this one and this one, with the same project, Redis and database."""

import sys

import pytest
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from testproject.redis_server import PrivateRedis
from tests.markdown import ROOT
from tests.support.redis_server import Redis
from tests.upgrade.versions import Version, base, install


@pytest.fixture
def folder(tmp_path):
    """Where jobs leave notes and find gates."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def server():
    """A server of this test alone. The broker and the inspector of this process use it, too."""
    with PrivateRedis() as server, override_settings(RTQ={"REDIS": server.url}):
        yield server
        get_broker().close()


@pytest.fixture
def client(server):
    with Redis.from_url(server.url, protocol=2) as client:
        yield client


@pytest.fixture
def new(folder, server):
    """This version."""
    version = Version("new", sys.executable, [str(ROOT)], folder, server.url)
    yield version
    version.close()


@pytest.fixture(scope="session")
def python_of_old(tmp_path_factory):
    """The Python of an environment with the version before."""
    return install(tmp_path_factory.mktemp("old") / "environment", base())


@pytest.fixture
def old(folder, server, python_of_old):
    """The version before."""
    version = Version("old", python_of_old, [], folder, server.url)
    yield version
    version.close()
