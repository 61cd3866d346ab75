"""After a restart of Redis, its append-only file is rewritten, where that is allowed."""

import pytest

from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerUnavailable
from testproject.redis_server import PrivateRedis
from tests.support.redis_server import UNREACHABLE, Redis


@pytest.fixture(scope="module")
def server():
    with PrivateRedis(appendonly=True) as server:
        yield server


@pytest.fixture
def client(server):
    client = Redis.from_url(server.url, protocol=2)
    client.flushdb()
    yield client
    client.acl_deluser("limited")
    client.close()


@pytest.fixture
def rewrite(server, client):
    """Look for a restart, as that user."""
    brokers = []

    def rewrite(user=""):
        brokers.append(WorkerBroker(Config(redis=server.url.replace("://", f"://{user}:pw@" if user else "://"))))
        return brokers[-1].rewrite_log_after_restart()

    yield rewrite
    for broker in brokers:
        broker.close()


def allow(client, *rules):
    client.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", *rules)


def noted(client):
    return client.hget("{rtq:default}:clock", "run_id").decode()


def test_a_server_that_runs_on_rewrites_nothing(client, rewrite):
    assert [rewrite(), rewrite()] == ["first", "same"]
    assert noted(client) == client.info("server")["run_id"]


def test_a_server_that_was_restarted_rewrites_its_file_once(client, rewrite):
    client.hset("{rtq:default}:clock", "run_id", "another")

    assert [rewrite(), rewrite()] == ["rewritten", "same"]
    assert noted(client) == client.info("server")["run_id"]


def test_who_may_not_rewrite_hears_it(client, rewrite):
    client.hset("{rtq:default}:clock", "run_id", "another")
    allow(client, "-bgrewriteaof")

    assert [rewrite("limited"), rewrite("limited")] == ["refused", "same"]


def test_who_may_not_ask_does_nothing(client, rewrite):
    allow(client, "-info")

    assert rewrite("limited") == "unknown"
    assert client.keys() == []


def test_a_server_without_such_a_file_does_nothing(redis, broker):
    assert broker.rewrite_log_after_restart() == "none"
    assert redis.keys() == []


def test_a_server_that_is_away_is_asked_again():
    with pytest.raises(BrokerUnavailable):
        WorkerBroker(Config(redis=UNREACHABLE)).rewrite_log_after_restart()
