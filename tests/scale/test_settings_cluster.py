"""A Cluster in RTQ["REDIS"]: its forms, what is wrong with them, and what nodes reply."""

import pytest
from redis.connection import Connection, SSLConnection
from redis.exceptions import ClusterDownError, MovedError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.sentinel import SentinelManagedSSLConnection

from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import Config
from django_rtq.exceptions import BrokerRefused, BrokerUnavailable, ConfigurationError
from django_rtq.scale.masters import SlotMaster
from tests.core.broker.redis.connections import reader_of, settings_of

NODES = ["10.0.0.1:6379", "[::1]:7001"]
ADDRESSES = (("10.0.0.1", 6379), ("::1", 7001))


@pytest.mark.parametrize(
    "source",
    [
        {"cluster": NODES, "username": "al", "password": "p@ss", "ssl": True, "ssl_ca_certs": "/ca.pem"},
        "rediss+cluster://al:p%40ss@10.0.0.1:6379,[::1]:7001?ssl_ca_certs=/ca.pem",
        "rediss+cluster://al:p%40ss@10.0.0.1:6379,[::1]:7001/0?ssl_ca_certs=/ca.pem",
    ],
)
def test_credentials_and_tls_reach_all_nodes(source):
    connection_settings = settings_of(source)
    slot = connection_settings.service

    with reader_of(connection_settings) as reader:
        assert isinstance(reader, SentinelManagedSSLConnection)
        assert (reader.username, reader.password, reader.ca_certs) == ("al", "p@ss", "/ca.pem")
    assert (slot.addresses, slot.connection_class) == (ADDRESSES, SSLConnection)
    assert dict(slot.arguments) == {"username": "al", "password": "p@ss", "ssl_ca_certs": "/ca.pem"}
    assert str(connection_settings) == "rediss+cluster://10.0.0.1:6379,[::1]:7001"
    assert "p@ss" not in f"{connection_settings!r}"


def test_without_tls_the_connections_are_plain():
    connection_settings = settings_of("redis+cluster://10.0.0.1:6379/")

    assert connection_settings.service.connection_class is Connection
    assert str(connection_settings) == "redis+cluster://10.0.0.1:6379"


@pytest.mark.parametrize(
    ("source", "db", "message"),
    [
        ({"cluster": []}, None, 'needs "cluster": a list of some nodes'),
        ({"cluster": "10.0.0.1:6379"}, None, 'needs "cluster": a list of some nodes'),
        ({"cluster": ["10.0.0.1"]}, None, 'needs "cluster": a list of some nodes'),
        ({"cluster": [("10.0.0.1", 6379)]}, None, 'needs "cluster": a list of some nodes'),
        ({"cluster": 5}, None, 'needs "cluster": a list of some nodes'),
        ({"cluster": NODES, "passwort": "x"}, None, "'passwort'. Did you mean 'password'"),
        ({"cluster": NODES, "db": 1}, None, "unknown key 'db'"),
        ({"cluster": NODES, "ssl_ca_certs": "/ca.pem"}, None, 'but TLS is off. Add "ssl": True'),
        ({"cluster": NODES}, 1, "names database 1 of a Cluster, which has database 0 only"),
        ("redis+cluster://10.0.0.1:6379/2", None, "names database 2 of a Cluster"),
        ("redis+cluster://10.0.0.1:6379/jobs", None, "path is not the number of a database"),
        ("redis+cluster://10.0.0.1", None, 'needs "cluster": a list of some nodes'),
        ("redis+cluster://", None, 'needs "cluster": a list of some nodes'),
        ("redis+cluster://10.0.0.1:6379?color=red", None, "the argument 'color'"),
    ],
)
def test_what_is_wrong_is_said(source, db, message):
    with pytest.raises(ConfigurationError, match=message):
        settings_of(source, db)


def test_a_single_server_that_is_named_as_a_cluster_is_refused_with_the_cure(server):
    broker = WorkerBroker(Config(redis={"cluster": [f"127.0.0.1:{server.port}"]}))

    with pytest.raises(BrokerRefused, match=f'is a single server. Write "redis://127.0.0.1:{server.port}/0"'):
        broker.redis.execute_one(("PING",))
    broker.close()


def test_nodes_that_are_away_are_told_in_a_sentence():
    broker = WorkerBroker(Config(redis={"cluster": ["127.0.0.1:1", "127.0.0.1:2"]}))

    with pytest.raises(BrokerUnavailable, match=r"^Redis cannot be reached: Error \d+ connecting to 127.0.0.1:1"):
        broker.redis.execute_one(("PING",))
    broker.close()


@pytest.fixture
def master(monkeypatch):
    """A master of a slot, and what the nodes reply to it: address -> reply to CLUSTER SLOTS."""
    replies = {}

    def ask(self, node):
        reply = replies.get(node, ConnectionRefusedError("nobody"))
        if isinstance(reply, Exception):
            raise reply
        return reply

    monkeypatch.setattr(SlotMaster, "_ask", ask)
    master = SlotMaster(settings_of({"cluster": ["a:1", "b:2"]}).service)
    master.replies = replies
    return master


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ([b"10.0.0.9", 7], ("10.0.0.9", 7)),
        ([b"node.example", 7, b"id", []], ("node.example", 7)),
        ([None, 7, b"id", []], ("b", 7)),
        ([b"", 7, b"id"], ("b", 7)),
        ([b"?", 7, b"id", [b"ip", b"10.0.0.8"]], ("10.0.0.8", 7)),
        ([b"?", 7, b"id"], ("b", 7)),
    ],
)
def test_a_node_without_a_name_is_the_one_that_was_asked(master, server, address):
    master.replies["b", 2] = [[0, 16383, server]]

    assert master.discover_master("") == address


def test_a_slot_that_no_node_has_is_told(master):
    master.replies["a", 1] = [[0, 5, [b"a", 1]]]

    with pytest.raises(ClusterDownError, match="no node of the Cluster has slot"):
        master.discover_master("")


def test_the_node_that_is_gone_is_asked_last(master):
    master.replies["a", 1] = [[0, 16383, [b"a", 1]]]
    assert master.discover_master("") == ("a", 1)
    master.replies["b", 2] = [[0, 16383, [b"b", 2]]]

    assert master.instead_of(("a", 1)) == ("b", 2)
    assert master.instead_of(("b", 2)) == ("a", 1)


def test_a_node_that_hangs_is_asked_last_and_does_not_end_the_search(master):
    master.replies |= {("a", 1): RedisTimeoutError("late"), ("b", 2): [[0, 16383, [b"b", 2]]]}
    assert master.discover_master("") == ("b", 2)

    master.forget(("b", 2))
    master.replies["b", 2] = RedisTimeoutError("late")
    master.replies["a", 1] = [[0, 16383, [b"a", 1]]]
    assert master.discover_master("") == ("a", 1)


@pytest.mark.parametrize(
    ("told", "address"), [("c:9", ("c", 9)), (":9", ("a", 9)), ("?:9", None), ("::1:9", ("::1", 9))]
)
def test_what_has_moved_is_followed(master, told, address):
    master.address = ("a", 1)

    assert master.has_moved(MovedError(f"{master.manager._number} {told}"))
    assert master.address == address


def test_what_is_no_news_of_a_move_is_not_taken_for_it(master):
    assert not any(map(master.has_moved, [None, b"MOVED", 5, ConnectionError("MOVED 7 c:9")]))
