"""private_redis(): an empty Redis for one test; and its base, a context manager that also decorates tests."""

from __future__ import annotations

import functools
import importlib
import inspect
import secrets
import unittest
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.conf import settings
from django.test import override_settings

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import get_broker, substitute_broker
from django_rtq.core.conf.config import get_config
from django_rtq.exceptions import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Self

D = TypeVar("D")


class Activation(ABC):
    """A context manager. As a decorator it is entered for each call of a function or coroutine function.

    For a class it is entered for each test: around setUp(), test and tearDown() of a unittest.TestCase, and around the
    test methods of another class.
    """

    def __init__(self) -> None:
        self._entered: list[ExitStack] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.enter(stack)
            self._entered.append(stack.pop_all())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.pop().close()

    @abstractmethod
    def enter(self, stack: ExitStack) -> None:
        """Begin a block. The stack ends it."""

    def __call__(self, decorated: D) -> D:
        if inspect.isclass(decorated):
            is_test_case = issubclass(decorated, unittest.TestCase)
            names = ["run"] if is_test_case else [name for name in dir(decorated) if name.startswith("test")]
            for name in names:
                setattr(decorated, name, self(getattr(decorated, name)))
            return decorated
        function: Any = decorated
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast(D, call_async)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(D, call)


SHARED_FAKE = "django_rtq.testing.private_redis.connect_to_fake"


class private_redis(Activation):
    """Uses an empty Redis in a block or test: this one, else RTQ["TEST_REDIS"], else fakeredis.

    `redis` has one of the forms of RTQ["REDIS"]. All keys get a prefix of their own, and are deleted at the end, so
    tests can share a server, also in parallel. fakeredis exists in this process only. Raises ConfigurationError without
    any of them.
    """

    def __init__(self, redis: str | Mapping[str, Any] = "") -> None:
        super().__init__()
        self._redis = redis

    def enter(self, stack: ExitStack) -> None:
        redis = self._redis or get_config().test_redis or SHARED_FAKE
        if redis == SHARED_FAKE:
            shared_fake_server()  # or it says what to install
        options = {**(getattr(settings, "RTQ", None) or {}), "TEST_REDIS": redis, "TEST": None}
        options["PREFIX"] = new_prefix()
        stack.enter_context(substitute_broker(None))
        stack.enter_context(override_settings(RTQ=options))
        stack.callback(lambda: delete_all(get_broker("")))


def connect_to_fake() -> Any:
    """The factory that SHARED_FAKE names: of a server in this process, where users have prefixes."""
    return importlib.import_module("fakeredis").FakeRedis(server=shared_fake_server())


@functools.cache
def shared_fake_server() -> Any:
    """That server. Raises ConfigurationError if fakeredis is not installed."""
    try:
        importlib.import_module("lupa")
        return importlib.import_module("fakeredis").FakeServer()
    except ImportError as error:
        raise ConfigurationError(
            'These tests need a Redis: install "fakeredis[lua]", or set RTQ["TEST_REDIS"] to a server for tests.'
        ) from error


def new_prefix() -> str:
    """A prefix for the keys of one block, or one process."""
    return f"rtq-test-{secrets.token_hex(6)}"


def delete_all(broker: Broker) -> None:
    """Delete all keys with the prefix of the broker, and close its connections."""
    pattern, cursor = f"*{broker.config.prefix}[:.]*", b"0"
    while True:
        cursor, keys = broker.redis.execute_one(("SCAN", cursor, "MATCH", pattern, "COUNT", 1000))
        if keys:
            broker.redis.execute_one(("UNLINK", *keys))
        if cursor == b"0":
            break
    broker.close()
