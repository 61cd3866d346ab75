"""private_redis() gives a test an empty Redis, and leaves nothing behind."""

import sys

import pytest
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import ConfigurationError, RedisNotAllowed
from django_rtq.testing import captured, drain, private_redis
from django_rtq.testing.private_redis import shared_fake_server
from testproject.settings import RTQ as OF_PROJECT
from tests.testing.tasks import send_mail

pytest.importorskip("fakeredis")
pytest.importorskip("lupa")


def test_each_block_has_a_redis_of_its_own(redis):
    for where in ("", redis.proxy.url):
        with private_redis(where):
            send_mail.delay("a")
            with private_redis(where):
                assert drain() == []
                send_mail.delay("b")
            assert len(drain()) == 1
        with private_redis(where):
            assert drain() == []


def test_the_keys_on_a_server_are_deleted(redis):
    redis.set("other", 1)
    with private_redis(redis.proxy.url):
        send_mail.delay_many([((str(i),), {}) for i in range(200)])
        assert all(b"rtq-test-" in key for key in redis.scan_iter() if key != b"other")
        assert len(redis.keys()) > 5
    assert redis.keys() == [b"other"]
    redis.delete("other")


def test_the_redis_of_the_settings_for_tests_is_used(redis):
    with override_settings(RTQ={**OF_PROJECT, "TEST_REDIS": redis.proxy.url, "MAX_RESULTS": 7}):
        with private_redis():
            assert get_broker().config.redis == redis.proxy.url
            assert get_config().max_results == 7
        assert get_config().prefix == "rtq"


def test_without_fakeredis_and_a_server_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fakeredis", None)
    shared_fake_server.cache_clear()
    with pytest.raises(ConfigurationError, match=r"fakeredis\[lua\].*TEST_REDIS"), private_redis():
        pass


def test_drain_is_refused_without_a_redis_for_tests():
    with override_settings(RTQ=OF_PROJECT), pytest.raises(RedisNotAllowed):
        drain()
    with captured(), pytest.raises(RedisNotAllowed, match=r"captured\(\) is active"):
        drain()
