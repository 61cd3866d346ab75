"""A server that refuses us, or cannot hold queues, is told from one that is away."""

import pytest
import redis as redis_py
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.keys import Keys
from django_rtq.core.broker.server_info import check_server
from django_rtq.core.broker.worker_broker import WorkerBroker, for_workers
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import BrokerRefused, BrokerUnavailable, ConfigurationError
from testproject.redis_server import PrivateRedis
from tests.app import tasks
from tests.core.broker.redis.test_diagnosis import asked
from tests.support.apps import needs
from tests.support.redis_cluster import PrivateCluster
from tests.support.redis_server import UNREACHABLE


@pytest.fixture(scope="module")
def locked():
    """A server with a password."""
    with PrivateRedis() as server:
        with redis_py.Redis(port=server.port, protocol=2) as client:
            client.config_set("requirepass", "secret")
        yield server


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
