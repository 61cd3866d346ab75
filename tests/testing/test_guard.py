"""A test does not reach the Redis of the project unless it asks for that; private_redis() gives it an empty one."""

import os
import subprocess
import sys

import pytest
from django.test import override_settings
from django.test.utils import _TestState

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.conf.config import DEBUG_REDIS, check_redis_is_allowed, get_config, is_under_test
from django_rtq.exceptions import ConfigurationError, RedisNotAllowed
from django_rtq.testing import captured, drain, private_redis
from django_rtq.testing.private_redis import shared_fake_server
from testproject.settings import RTQ as OF_PROJECT
from tests.markdown import ROOT
from tests.support.redis_server import UNREACHABLE
from tests.testing.tasks import send_mail


def test_the_redis_of_the_project_is_refused_with_the_way_out():
    with override_settings(RTQ=OF_PROJECT), pytest.raises(RedisNotAllowed) as caught:
        send_mail.delay("a")
    for name in ("captured()", "eager()", "drain()", "rtq_captured", 'RTQ["TEST_REDIS"]'):
        assert name in str(caught.value)


def test_other_settings_do_not_make_it_another_redis():
    with override_settings(RTQ={**OF_PROJECT, "RESULT_TTL": 5, "PREFIX": "other"}):
        for role in ("client", "worker", "supervisor"):
            with pytest.raises(RedisNotAllowed):
                WorkerBroker(get_config(), role=role)
        with pytest.raises(RedisNotAllowed):
            get_broker()


def test_a_redis_that_a_test_sets_is_allowed():
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        assert get_broker().config.redis == UNREACHABLE


def test_the_redis_for_tests_takes_the_place_of_the_project_s():
    with override_settings(RTQ={**OF_PROJECT, "DB": 5, "TEST_REDIS": UNREACHABLE}):
        assert str(get_broker().connection_settings) == UNREACHABLE


@pytest.mark.usefixtures("no_test_runner")
def test_without_a_test_runner_nothing_is_changed():
    with override_settings(RTQ={**OF_PROJECT, "TEST_REDIS": UNREACHABLE}):
        assert check_redis_is_allowed(get_config()) is get_config()


def test_a_project_without_redis_can_be_tested_but_not_with_the_default_redis(monkeypatch):
    monkeypatch.setattr("django_rtq.core.conf.config._redis_of_project", lambda: [DEBUG_REDIS])
    with override_settings(RTQ=None):
        assert get_config().redis == DEBUG_REDIS
        with pytest.raises(RedisNotAllowed):
            send_mail.delay("a")


def test_pytest_and_the_test_runner_of_django_are_recognised(monkeypatch):
    assert is_under_test()
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    assert is_under_test()
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert is_under_test()
    monkeypatch.delattr(_TestState, "saved_data", raising=False)
    assert not is_under_test()
    monkeypatch.setattr(_TestState, "saved_data", None, raising=False)
    assert is_under_test()


def test_programs_that_a_test_starts_are_not_tests():
    program = "from django_rtq.core.conf.config import is_under_test; import django.test; print(is_under_test())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


OUTSIDE = """
import os, sys
import django
from django.conf import settings

settings.configure(INSTALLED_APPS=["django_rtq"], RTQ={"REDIS": os.environ["URL"], "TEST": "eager"}, USE_TZ=True)
django.setup()
from tests.testing.tasks import send_mail

print(send_mail.delay("a").state)
print([name for name in sys.modules if name.startswith(("django.test", "django_rtq.testing", "unittest"))])
"""


def test_outside_of_tests_a_mode_of_tests_is_not_looked_at(redis, proxy):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DJANGO"))}
    done = subprocess.run(
        [sys.executable, "-c", OUTSIDE],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        env={**environment, "URL": proxy.url},
    )
    assert done.stdout == "queued\n[]\n"


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
