"""RTQ["TEST"]: what becomes of the jobs of a whole test suite, where a test does not say it itself.

It begins when a test first enqueues a job or asks for one. Each test has jobs of its own: those of the test before are
forgotten when the plugin of pytest says that a test begins or ends, or TestCase.run() with another runner.
"""

from __future__ import annotations

import functools
import os
import sys
import unittest
from contextvars import Context
from threading import RLock
from typing import Any

from django_rtq.core.broker.broker import Broker
from django_rtq.core.broker.brokers import forget_brokers
from django_rtq.core.conf.config import get_config, is_pytest, set_redis_of_drain
from django_rtq.exceptions import ConfigurationError
from django_rtq.testing.captured import captured
from django_rtq.testing.eager import eager
from django_rtq.testing.private_redis import SHARED_FAKE, delete_all, new_prefix, shared_fake_server
from django_rtq.testing.substitute import Substitute, handles_of_substitutes

_lock = RLock()
_pid = 0  # of the process that these belong to
_substitutes: dict[str, Substitute[Any]] = {}  # of this test, by the value of RTQ["TEST"]
_brokers: list[Broker] = []  # of this test, for "drain"


def find_broker(mode: str) -> Broker:
    """What takes the place of all brokers until the test ends. Raises ConfigurationError."""
    with _lock:
        _watch_tests()
        if mode == "drain":
            if not _pid:  # a worker that a test starts has the keys of the test
                _own_keys()
            if get_config().test_redis == SHARED_FAKE:
                shared_fake_server()  # or it says what to install
            _brokers.append(Broker(get_config()))
            return _brokers[-1]
        if mode not in _substitutes:
            substitute = _substitutes[mode] = captured() if mode == "captured" else eager()
            substitute.name = f'RTQ["TEST"] = "{mode}"'
            Context().run(substitute.begin)  # jobs see none of the context variables of who comes first, as in a worker
        return _substitutes[mode].broker()


def forget_jobs() -> None:
    """A test begins or ends: let there be no jobs."""
    with _lock:
        if _pid not in (0, os.getpid()):  # the test runner has forked, with jobs that are not ours
            _brokers.clear()
            _own_keys()
        for broker in _brokers:
            delete_all(broker)
        for substitute in _substitutes.values():
            substitute.close_engine()
        if _brokers or _substitutes:
            _brokers.clear()
            _substitutes.clear()
            forget_brokers(())


def _own_keys() -> None:
    """Processes that run tests may share a server."""
    global _pid  # noqa: PLW0603
    _pid = os.getpid()
    set_redis_of_drain(SHARED_FAKE, new_prefix())


@functools.cache
def _watch_tests() -> None:
    """Have forget_jobs() called, from now on. Raises ConfigurationError."""
    if not is_pytest():
        unittest.TestCase.run = _apart(unittest.TestCase.run)  # type: ignore[method-assign]
    elif "django_rtq.pytest_plugin" not in sys.modules:
        raise ConfigurationError(
            'RTQ["TEST"] needs the plugin of django_rtq for pytest, which says when a test begins, but it is switched '
            "off. Add  -p django_rtq.pytest_plugin  to the options of pytest."
        )
    handles_of_substitutes().__enter__()


def _apart(run: Any) -> Any:
    @functools.wraps(run)
    def run_apart(self: unittest.TestCase, result: unittest.TestResult | None = None) -> Any:
        forget_jobs()
        try:
            return run(self, result)
        finally:
            forget_jobs()

    return run_apart
