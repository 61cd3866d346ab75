"""A server that refuses us, or cannot hold queues, is told from one that is away; the log of one is rewritten."""

import asyncio
import re
import socketserver
import threading
from contextlib import contextmanager

import pytest
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.server_info import ask_server, check_server
from django_rtq.core.broker.worker_broker import WorkerBroker, for_workers
from django_rtq.core.conf.config import Config, get_config
from django_rtq.exceptions import BrokerError, BrokerRefused, BrokerUnavailable, ConfigurationError
from testproject.redis_server import PrivateRedis, free_port
from tests.app import tasks
from tests.support.apps import needs
from tests.support.jobs import QUEUE, new_job
from tests.support.redis_cluster import PrivateCluster
from tests.support.redis_server import UNREACHABLE, Redis

COMMAND = re.compile(rb"\*\d+\r\n((?:\$\d+\r\n.*?\r\n)+)", re.DOTALL)
OLD = b"redis_version:5.0.14"
REPLIES_OF_AN_OLD_REDIS = {
    b"HELLO": b"-ERR unknown command `HELLO`, with args beginning with: \r\n",
    b"INFO": b"$%d\r\n%s\r\n" % (len(OLD), OLD),
    b"TIME": b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n",
    b"GET": b"$-1\r\n",
    b"SADD": b":1\r\n",
}


@contextmanager
def listening(answer):
    """A server on a port of its own: `answer` gets what a client sends, and returns what to send; None: it closes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            while data := self.request.recv(65_536):
                reply = answer(data)
                if reply is None:
                    return
                self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def resp(replies, default=b"+OK\r\n"):
    """A server that replies to these commands, and to all others with OK."""

    def answer(data):
        names = [body.split(b"\r\n")[1].upper() for body in COMMAND.findall(data)]
        return b"".join(replies.get(name, default) for name in names)

    return answer


def asked(address):
    broker = WorkerBroker(Config(redis=address, socket_timeout=2))
    try:
        return ask_server(broker.redis, broker.keys)
    finally:
        broker.close()


def test_a_port_of_another_server():
    with (
        listening(lambda data: b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        pytest.raises(BrokerRefused, match=rf"leads to 127.0.0.1:{port}, where no Redis answers, but another"),
    ):
        asked(f"redis://127.0.0.1:{port}/0")


def test_coroutines_are_told_too():
    async def enqueue(broker):
        await broker.aenqueue(QUEUE, [new_job()])

    with listening(lambda data: b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        broker = WorkerBroker(Config(redis=f"redis://127.0.0.1:{port}/0"))
        with pytest.raises(BrokerRefused, match="no Redis answers"):
            asyncio.run(enqueue(broker))
        broker.close()


def test_a_proxy_without_a_server_behind_it_is_an_outage():
    with listening(lambda data: None) as port, pytest.raises(BrokerUnavailable) as caught:
        asked(f"redis://127.0.0.1:{port}/0")

    assert not isinstance(caught.value, BrokerRefused)


def test_a_file_of_certificates_that_is_not_there():
    with pytest.raises(BrokerRefused, match=r"has ssl_ca_certs='/nope\.pem', a file that does not exist"):
        asked(f"rediss://127.0.0.1:{free_port()}/0?ssl_ca_certs=/nope.pem")


@pytest.mark.parametrize(
    "use", [asked, lambda address: WorkerBroker(Config(redis=address)).enqueue(QUEUE, [new_job()])]
)
def test_a_redis_that_is_too_old_is_refused_with_its_version(use):
    with (
        listening(resp(REPLIES_OF_AN_OLD_REDIS)) as port,
        pytest.raises(ConfigurationError, match=r"leads to Redis 5\.0\.14, which is too old: .*6\.2"),
    ):
        use(f"redis://127.0.0.1:{port}/0")


def test_a_redis_that_knows_hello_and_is_too_old_is_refused():
    hello = b"*6\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
    with (
        listening(resp({**REPLIES_OF_AN_OLD_REDIS, b"HELLO": hello})) as port,
        pytest.raises(ConfigurationError, match=r"leads to Redis 6\.0\.9, which is too old"),
    ):
        WorkerBroker(Config(redis=f"redis://127.0.0.1:{port}/0")).enqueue(QUEUE, [new_job()])


def test_missing_permissions_are_named_with_their_cure(redis, broker):
    redis.execute_command("ACL", "SETUSER", "narrow", "on", ">secret", "~other:*", "+@all")
    port = redis.connection_pool.connection_kwargs["port"]
    narrow = WorkerBroker(Config(redis=f"redis://narrow:secret@127.0.0.1:{port}/0"))
    try:
        with pytest.raises(BrokerError, match=r"docs/redis.md#access: the keys ~rtq:\* and ~\{rtq:\*"):
            narrow.enqueue(QUEUE, [new_job()])
    finally:
        narrow.close()
        redis.execute_command("ACL", "DELUSER", "narrow")


# -- servers that answer


@pytest.fixture(scope="module")
def cluster():
    with PrivateCluster(masters=1) as cluster:
        yield cluster.servers[0]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("127.0.0.1:{}/0", r'^Redis refused the credentials in RTQ\["REDIS"\]: Authentication required'),
        (":wrong@127.0.0.1:{}/0", r'^Redis refused the credentials in RTQ\["REDIS"\]: invalid'),
        (":secret@127.0.0.1:{}/99", r'^Redis cannot be used as RTQ\["REDIS"\] says: DB index is out of range'),
    ],
)
def test_what_waiting_does_not_cure_has_an_error_of_its_own(locked, place, message):
    with pytest.raises(BrokerRefused, match=message):
        asked(f"redis://{place.format(locked.port)}")

    assert isinstance(asked(f"redis://:secret@127.0.0.1:{locked.port}/1"), list)  # what is wrong with that server


def test_a_server_that_is_not_there_cannot_be_reached_and_was_not_lost():
    with pytest.raises(BrokerUnavailable, match=r"^Redis cannot be reached: ") as caught:
        asked(UNREACHABLE)

    assert not isinstance(caught.value, BrokerRefused)


@needs("scale")
def test_sentinels_that_are_away_are_told_in_a_sentence():
    with pytest.raises(BrokerUnavailable) as caught:
        asked({"sentinels": [("127.0.0.1", 1)], "service": "mymaster"})

    assert str(caught.value) == "No Sentinel names a master: No master found for 'mymaster'. Not all Sentinels answer"


def test_a_cluster_is_refused_when_it_first_answers(cluster):
    with pytest.raises(ConfigurationError, match=r"leads to a node of a Redis Cluster\. Name the Cluster"):
        asked(cluster.url)
    with override_settings(RTQ={"REDIS": cluster.url}):
        with pytest.raises(ConfigurationError, match=r"leads to a node of a Redis Cluster\. Name the Cluster"):
            tasks.note.delay("x")
        get_broker().close()


def test_a_sentinel_is_no_server():
    with pytest.raises(ConfigurationError, match=r'leads to a Sentinel.*"sentinels"'):
        next(check_server([b"server", b"redis", b"mode", b"sentinel", b"modules", []], None, Keys("rtq"), str))


def test_producers_have_timeouts_of_their_own(redis, proxy):
    with override_settings(RTQ={"REDIS": proxy.url, "SOCKET_TIMEOUT": 0.1, "SOCKET_CONNECT_TIMEOUT": 2}):
        broker = for_workers(get_broker())
        redis.stay_silent_once(around=b"PING")

        with pytest.raises(BrokerUnavailable, match="in time"):
            broker.redis.execute_one(("PING",))
        assert (broker.connection_settings.socket_timeout, broker.connection_settings.connect_timeout) == (0.1, 2)
        worker = WorkerBroker(get_config(), role="worker")
        assert (worker.connection_settings.socket_timeout, worker.connection_settings.connect_timeout) == (5, 5)
        broker.close()


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
