"""A URL in RTQ["REDIS"]: where it leads, and that its password is never shown."""

import ssl

import pytest
import redis
from redis.connection import SSLConnection

from django_rtq.exceptions import ConfigurationError
from tests.core.broker.redis.connections import client_of, reader_of, settings_of

SECRET = "hunter2%2Fx"  # "hunter2/x", as a URL has to write it


@pytest.mark.parametrize("db", [None, 3])
def test_a_url_leads_to_its_database_unless_db_names_another(empty, db):
    with client_of(settings_of(f"redis://127.0.0.1:{empty.port}/2", db)) as client:
        client.set("rtq:key", "value")

    with redis.Redis(port=empty.port, db=db or 2) as direct:
        assert direct.get("rtq:key") == b"value"


def test_a_url_without_a_number_takes_the_one_of_db():
    assert settings_of("redis://host", 4).db == 4
    assert settings_of("redis://host").db == 0


def test_tls_of_a_url_is_kept():
    connection_settings = settings_of("rediss://host:6380/1?ssl_ca_certs=/ca.pem&ssl_cert_reqs=optional")
    with reader_of(connection_settings) as reader:
        assert isinstance(reader, SSLConnection)
        assert (reader.ca_certs, reader.cert_reqs) == ("/ca.pem", ssl.CERT_OPTIONAL)
    assert str(connection_settings) == "rediss://host:6380/1"


# Secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"redis://alice:{SECRET}@host:6379/2", "redis://host:6379/2"),
        (f"redis://:{SECRET}@[::1]/2", "redis://[::1]:6379/2"),
        (f"rediss://:{SECRET}@host/2?password={SECRET}", "rediss://host:6379/2"),
        (f"unix:///run/redis.sock?db=2&password={SECRET}", "unix:///run/redis.sock?db=2"),
    ],
)
def test_connection_settings_never_show_the_password(url, shown):
    connection_settings = settings_of(url)

    assert str(connection_settings) == shown
    assert "hunter" not in f"{connection_settings!r} {[connection_settings]}"


@pytest.mark.parametrize(
    "url", ["redis://:hunter2/x@host/0", "redis://:hunter2#x@host/0", ":hunter2@host:6379/0", "hunter2@host"]
)
def test_what_is_said_about_a_bad_url_does_not_show_the_password(url):
    with pytest.raises(ConfigurationError) as caught:
        settings_of(url)

    assert "hunter" not in str(caught.value)
    assert caught.value.__context__ is None  # it would be printed too
