"""What finds mistakes in scripts: the scenarios of the model, and the tests of each script."""

import importlib
import inspect
import itertools
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, ClassVar

import pytest
from django.test import override_settings

from django_rtq.console.nouns import rtq
from django_rtq.console.reading.readers import readers_of
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.one_job import access_to_jobs
from django_rtq.core.broker.scripts import SCRIPTS
from django_rtq.core.broker.worker_broker import WorkerBroker, for_workers
from testproject.redis_server import PrivateRedis
from tests.markdown import ROOT
from tests.protocol.model.all_scenarios import SCENARIOS
from tests.protocol.model.drain import drain
from tests.protocol.model.parallel_run import ParallelRun, parallel_config
from tests.support.jobs import QUEUE
from tests.support.redis_server import LEASE_SECONDS

MOST_SECONDS = 8  # a mistake may let a script, or who calls it, go on for ever
#: Where the tests of scripts are.
FOLDERS = ["tests/core/broker", "tests/protocol", "tests/limits/lua", "tests/workflows/lua", "tests/console/lua"]
GIVEN = {"redis", "broker", "access", "readers", "rtq", "keys", "limits", "hour", "monkeypatch"}
Function = Callable[..., Any]


class TookTooLong(BaseException):
    """Nobody catches it by chance."""


class Players:
    """Plays a scenario, or all cases of a test, by its name. A mistake that it finds raises an exception."""

    _sound: ClassVar[set[str]] = set()

    def __init__(self, redis: Any, server: PrivateRedis) -> None:
        self._redis, self._server, self._url = redis, server, server.url
        self._scenarios = {scenario.__name__: scenario for scenario in SCENARIOS}
        self._tests = {f"{script}/{test.__name__}": (module, test) for script, module, test in tests_of_scripts()}

    def names(self, scripts: list[str]) -> list[str]:
        """All scenarios, and the tests of these scripts."""
        return [*self._scenarios, *(name for name in self._tests if name.partition("/")[0] in scripts)]

    def finds_mistake(self, name: str) -> bool:
        """Whether it fails."""
        try:
            with time_limit(MOST_SECONDS, self._server.kill):  # a script that never ends occupies it
                self.play(name)
        except (Exception, TookTooLong, pytest.fail.Exception):  # noqa: BLE001 - whatever a wrong script leads to
            return True
        finally:
            self._redis.proxy.arm(None)  # a test that failed may not have met its fault
            if not self._server.is_running:
                self._server.start()
                self._redis.load_scripts()
        return False

    def is_sound(self, name: str) -> bool:
        """Whether it passes without a mistake. Scenarios are tested by themselves."""
        if name not in self._sound and (name in self._scenarios or not self.finds_mistake(name)):
            self._sound.add(name)
        return name in self._sound

    def play(self, name: str) -> None:
        """On an empty database. Does nothing if there is none of this name any more."""
        if name in self._scenarios:
            self._play_scenario(self._scenarios[name])
        elif name in self._tests:
            self._play_test(*self._tests[name])

    def _play_scenario(self, scenario: Callable[[ParallelRun], None]) -> None:
        """From two workers to the end of all jobs."""
        broker = WorkerBroker(parallel_config(self._url))
        try:
            parallel = ParallelRun(self._redis, broker)
            parallel.sign_on("w0")
            parallel.sign_on("w1")
            scenario(parallel)
            drain(parallel)
        finally:
            broker.close()

    def _play_test(self, module: ModuleType, test: Function) -> None:
        for case in cases_of(test):
            self._redis.flushdb()
            with ExitStack() as stack, override_settings(RTQ={"REDIS": self._url, "LEASE_SECONDS": LEASE_SECONDS}):
                broker = for_workers(get_broker())
                stack.callback(broker.close)
                stack.callback(self._redis.config_set, "maxmemory", 0)  # a test that fails may leave it full
                given = {"monkeypatch": stack.enter_context(pytest.MonkeyPatch.context())}
                given |= self._fixtures(broker) | case
                test(**{name: value_of(name, given, module, stack) for name in parameters_of(test)})

    def _fixtures(self, broker: WorkerBroker) -> dict[str, Any]:
        """What fixtures of these names give."""
        readers = readers_of()
        return {
            "redis": self._redis,
            "broker": broker,
            "access": access_to_jobs(""),
            "readers": readers,
            "rtq": rtq,
            "limits": readers.clients.limits,
            "keys": broker.keys.of(QUEUE),
            "hour": self._redis.time()[0] // 3600,
        }


@contextmanager
def time_limit(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """After so many seconds, call end() in the main thread, and raise TookTooLong."""

    def on_alarm(*args: object) -> None:
        end()
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tests_of_scripts() -> Iterator[tuple[str, ModuleType, Function]]:
    """Those of each script, and of some parts, that need no other fixtures than GIVEN, and those of their module."""
    for script in (
        *SCRIPTS,
        "enqueue_unique",
        "runners",
        "queued_list",
        "finished_list",
        "suspend",
        "limits_of_settings",
    ):
        module = module_of(script)
        for name, test in vars(module).items():
            if name.startswith("test_") and can_play(module, test):
                yield script, module, test


def module_of(script: str) -> ModuleType:
    """The tests of a script: they are beside those of its folder."""
    found = next(folder for folder in FOLDERS if (ROOT / folder / f"test_{script}.py").exists())
    return importlib.import_module(f"{found.replace('/', '.')}.test_{script}")


def can_play(module: ModuleType, test: Function) -> bool:
    marks = getattr(test, "pytestmark", ())
    names = {name for case in itertools.islice(cases_of(test), 1) for name in case}
    return all(mark.name == "parametrize" for mark in marks) and are_known(parameters_of(test), module, GIVEN | names)


def are_known(names: list[str], module: ModuleType, given: set[str]) -> bool:
    """Whether these fixtures, and those that they use, are given or of this module."""
    return all(
        name in given or (name in vars(module) and are_known(parameters_of(vars(module)[name]), module, given))
        for name in names
    )


def parameters_of(function: Function) -> list[str]:
    return list(inspect.signature(inspect.unwrap(function)).parameters)


def cases_of(test: Function) -> Iterator[dict[str, Any]]:
    """The values of the parameters of each case."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for values in itertools.product(*(mark.args[1] for mark in marks)):
        case: dict[str, Any] = {}
        for mark, value in zip(marks, values, strict=True):
            names = re.split(r",\s*", mark.args[0]) if isinstance(mark.args[0], str) else mark.args[0]
            items = getattr(value, "values", value) if len(names) > 1 else [value]
            case |= dict(zip(names, items, strict=True))
        yield case


def value_of(name: str, given: dict[str, Any], module: ModuleType, stack: ExitStack) -> Any:
    """Of a fixture, which is called if it is one of the module."""
    if name not in given:
        fixture = inspect.unwrap(vars(module)[name])
        value = fixture(**{other: value_of(other, given, module, stack) for other in parameters_of(fixture)})
        if inspect.isgenerator(value):
            stack.callback(next, value, None)
            value = next(value)
        given[name] = value
    return given[name]
