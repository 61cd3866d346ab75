"""private_redis(): an empty Redis for one test."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from django.conf import settings
from django.test import override_settings

from django_rtq.broker.brokers import get_broker
from django_rtq.conf.config import get_config
from django_rtq.exceptions import ConfigurationError
from django_rtq.testing.activation import Activation

_FAKE = "django_rtq.testing.private_redis.connect_to_fake"
_fake_servers: list[Any] = []


def private_redis(redis: str | Mapping[str, Any] = "") -> PrivateRedis:
    """Use an empty Redis in a block or test: this one, else RTQ["TEST_REDIS"], else fakeredis.

    `redis` has one of the forms of RTQ["REDIS"]. On a server all keys get a prefix of their own, and are deleted at the
    end, so tests can share it, also in parallel. fakeredis exists in this process only. Raises ConfigurationError if
    there is none of them.
    """
    return PrivateRedis(redis)


class PrivateRedis(Activation):
    """See private_redis()."""

    def __init__(self, redis: str | Mapping[str, Any]) -> None:
        self._redis = redis
        self._entered: list[ExitStack] = []

    def __enter__(self) -> None:
        with ExitStack() as stack:
            redis = self._redis or get_config().test_redis
            if redis in ("", _FAKE):  # the latter: inside another block
                redis = _FAKE
                _fake_servers.append(_new_fake_server())
                stack.callback(_fake_servers.pop)
            options = {**(getattr(settings, "RTQ", None) or {}), "TEST_REDIS": redis}
            options["PREFIX"] = f"rtq-test-{secrets.token_hex(6)}"
            stack.enter_context(override_settings(RTQ=options))
            stack.callback(_delete_all)
            self._entered.append(stack.pop_all())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().close()


def connect_to_fake() -> Any:
    """The factory that RTQ["TEST_REDIS"] names inside the block."""
    return importlib.import_module("fakeredis").FakeRedis(server=_fake_servers[-1])


def _new_fake_server() -> Any:
    try:
        importlib.import_module("lupa")
        return importlib.import_module("fakeredis").FakeServer()
    except ImportError as error:
        raise ConfigurationError(
            'These tests need a Redis: install "fakeredis[lua]", or set RTQ["TEST_REDIS"] to a server for tests.'
        ) from error


def _delete_all() -> None:
    broker = get_broker()
    if not _fake_servers or broker.config.redis != _FAKE:
        pattern, cursor = f"*{broker.config.prefix}[:.]*", b"0"
        while True:
            cursor, keys = broker.redis.execute_one(("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
            if keys:
                broker.redis.execute_one(("UNLINK", *keys))
            if cursor == b"0":
                break
    broker.close()
