"""What all tests share: a Redis server of their own, and a look at what they leave behind."""

import threading
import time
from contextlib import contextmanager

import pytest
import redis as redis_py
from django.test import override_settings

from django_rtq.broker.broker import get_broker
from django_rtq.broker.scripts import SCRIPTS
from django_rtq.inspector.inspector import get_inspector
from testproject.redis_server import PrivateRedis
from tests.proxy import Fault, Proxy
from tests.snapshots import is_foreign

NOBODY = "redis://127.0.0.1:1/0"
LEASE_SECONDS = 2.0


def wait_until(condition, seconds=10.0):
    """Wait for something that happens by itself. The only sleep in the suite."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


class Redis(redis_py.Redis):
    """A client of the tests' own server, beside the connections of the broker."""

    proxy = None

    def drop_connection(self, moment, around=b"EVALSHA"):
        """Cut the broker's connection at its next script: "before" it arrives, or "after" it ran."""
        self.proxy.arm(Fault(moment, around))

    def answer_once(self, answer, around=b"EVALSHA"):
        """Answer the broker's next script with these bytes, and keep it from the server."""
        self.proxy.arm(Fault("answer", around, answer))

    def stay_silent_once(self, around=b"EVALSHA"):
        """Never answer the broker's next script."""
        self.proxy.arm(Fault("silence", around))

    @contextmanager
    def full_memory(self):
        """As if not one byte more could be stored."""
        self.config_set("maxmemory", 1)
        try:
            yield
        finally:
            self.config_set("maxmemory", 0)

    def load_scripts(self):
        """Let the server know all scripts, so that the next call is the call itself."""
        with self.pipeline(transaction=False) as pipe:
            for script in SCRIPTS.values():
                pipe.script_load(script.text)
            pipe.execute()

    def clients_of_ours(self):
        """The connections of brokers that are open."""
        return [client for client in self.client_list() if client["name"].startswith("rtq:")]


@pytest.fixture(scope="session", autouse=True)
def _nobody_elses_redis():
    # A test that forgets to ask for a server must not find the one of whoever runs it.
    with override_settings(RTQ={"REDIS": NOBODY}):
        yield


@pytest.fixture(scope="session")
def redis_server():
    """A server of this session."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture(scope="session")
def proxy(redis_server):
    """Stands between the server and the brokers."""
    proxy = Proxy(redis_server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def redis(redis_server, proxy):
    """A client on an empty database. Looks after the test what it left there."""
    client = Redis.from_url(redis_server.url, protocol=2)
    client.proxy = proxy
    client.flushdb()
    client.load_scripts()
    yield client
    assert not proxy.is_armed, "a connection was to be dropped, but no script came"
    assert not [key for key in client.scan_iter(count=1000) if is_foreign(key)]
    wait_until(lambda: not client.clients_of_ours())
    client.close()


@pytest.fixture
def rtq_settings(redis, proxy):
    """The settings name the tests' server."""
    with override_settings(RTQ={"REDIS": proxy.url, "LEASE_SECONDS": LEASE_SECONDS}):
        yield


@pytest.fixture
def broker(rtq_settings):
    """The broker of this process; its leases are short."""
    broker = get_broker()
    yield broker
    broker.close()


@pytest.fixture
def inspector(broker):
    """The inspector of this process."""
    return get_inspector()


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("rtq-")]
    assert not left
