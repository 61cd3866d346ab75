"""The dotted path of a factory in RTQ["REDIS"]: all is taken over from its client but the pool."""

import redis
from redis.connection import UnixDomainSocketConnection

from tests.core.broker.redis.connections import client_of, reader_of, settings_of


def test_a_factory_gives_everything_but_its_pool(empty, factory):
    path = factory(lambda: redis.Redis(port=empty.port, db=5, decode_responses=True, socket_timeout=0.1))
    for db, expected in [(None, 5), (6, 6)]:
        with client_of(settings_of(path, db)) as client:
            client.set("key", "value")
            assert client.get("key") == b"value"
        with redis.Redis(port=empty.port, db=expected) as direct:
            assert direct.exists("key")


def test_a_factory_may_use_a_unix_socket_and_a_pool_that_blocks(empty, factory):
    pool = redis.BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=str(empty.socket_path), timeout=1
    )
    with client_of(settings_of(factory(lambda: redis.Redis(connection_pool=pool)), 2)) as client:
        assert client.ping()


def test_a_factory_may_bring_a_credential_provider(factory):
    provider = redis.UsernamePasswordCredentialProvider("alice", "hunter2")
    connection_settings = settings_of(factory(lambda: redis.Redis(credential_provider=provider)))
    with reader_of(connection_settings) as reader:
        assert reader.credential_provider is provider


def test_arguments_of_none_do_not_replace_our_own(factory):
    connection_settings = settings_of(factory(lambda: redis.Redis(protocol=None, username=None)))

    assert not {"protocol", "username"} & set(connection_settings.arguments)
    with reader_of(connection_settings) as reader:
        assert reader.protocol == 2
