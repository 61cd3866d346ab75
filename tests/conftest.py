"""What the tests share: a Redis server of their own, and checks of what they leave behind."""

import os
import re
import sys
import threading
import uuid
from contextlib import nullcontext, suppress
from functools import cache
from types import ModuleType

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.one_job import JobAccess
from django_rtq.core.broker.redis.commands import command_hooks
from django_rtq.core.broker.worker_broker import for_workers
from django_rtq.core.tasks import registry
from hatch_build import compile_catalogs
from testproject.mariadb_server import MariaDBUnavailable, PrivateMariaDB
from testproject.postgres_server import PostgresUnavailable, PrivatePostgres
from testproject.redis_server import PrivateRedis
from tests.markdown import ROOT
from tests.support import second_try
from tests.support.databases import as_default, sqlite_settings
from tests.support.fault_proxy import FaultProxy
from tests.support.jobs import QUEUE
from tests.support.nightly import IS_NIGHTLY
from tests.support.redis_server import LEASE_SECONDS, UNREACHABLE, Redis
from tests.support.signals import stop_passing_on_ignored_signals
from tests.support.snapshots import is_foreign
from tests.support.waiting import minute_with_time_left, wait_until

stop_passing_on_ignored_signals()
compile_catalogs()
# A busy machine is slow at times: limits of the time that an example takes, or its making, would fail tests by chance.
settings.register_profile(
    "rtq",
    max_examples=100 if IS_NIGHTLY else 30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("rtq")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each worker that a test starts would compile all modules again


def pytest_configure(config):
    """Failed tests get a second try where that is wanted."""
    second_try.register(config)


# Real workers that `make test` runs too: they end, and are killed.
A_FEW_WORKERS = (
    "tests/core/worker/test_burst.py::test_a_burst_runs_all_that_is_due",
    "tests/core/worker/test_crashes.py::test_a_job_whose_child_is_killed",
    "tests/core/worker/test_crashes.py::test_every_way_to_die",
)

# Folders of tests that are long: with a browser, or servers that are started again and again.
LONG_FOLDERS = (
    *("tests/console/browser/", "tests/console/shards/"),
    *("tests/scale/cluster/", "tests/scale/shards/", "tests/scale/workers/"),
)

# They depend on the server: CI runs them on the bundled one and on that of the system, with test-core also the core's.
# Tests of all scripts run on each server with `make matrix-servers`.
OF_SERVERS = (
    *("tests/protocol/", "tests/test_private_redis.py"),
    *("tests/scale/cluster/", "tests/scale/test_settings_sentinel.py"),
)
OF_ONE_SERVER = (  # sweeps, and what reads the text of scripts
    "tests/protocol/model/",
    *(f"tests/protocol/test_mutants.py::test_{name}" for name in ("a_", "survivors", "the_mistakes", "random")),
    "tests/protocol/test_scripts.py::",
    "tests/protocol/test_state_machine.py::",
)

# They take most of a minute or more, and come first: the other processes share the rest.
SLOWEST = ("tests/test_tutorial.py::test_the_tutorial", "tests/upgrade/", "tests/workflows/test_torture.py::")

_ALL_ARE_LONG = re.compile(r"^pytestmark = .*pytest\.mark\.long\b", re.M)
_SOME_ARE_LONG = re.compile(r"\bmark\.long\b|\brtq_worker\b")


@cache
def has_wanted(path, wanted):
    """Whether tests of a module may be among those of "-m": its text says so, which is faster than a look at each."""
    name = path.relative_to(ROOT).as_posix()
    is_long_folder = name.startswith(LONG_FOLDERS)
    if wanted == "not long":
        return not is_long_folder and not _ALL_ARE_LONG.search(path.read_text())
    if wanted == "long or server":
        is_of_servers = name.startswith(OF_SERVERS) and not f"{name}::".startswith(OF_ONE_SERVER)
        return is_long_folder or is_of_servers or bool(_SOME_ARE_LONG.search(path.read_text()))
    return True


def pytest_ignore_collect(collection_path, config):
    """A run of all tests that wants only some kinds does not look into each module."""
    if config.args != config.getini("testpaths") or not collection_path.name.startswith("test_"):
        return None
    return None if has_wanted(collection_path, config.option.markexpr) else True


def pytest_collection_modifyitems(items):
    """Mark tests of some folders or with real workers as long, as slow modules mark themselves; those of servers and of
    databases."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOWEST))
    for item in items:
        if item.nodeid.startswith(OF_SERVERS) and not item.nodeid.startswith(OF_ONE_SERVER):
            item.add_marker("server")
        is_long = item.nodeid.startswith(LONG_FOLDERS) or "rtq_worker" in item.fixturenames
        if is_long and not item.nodeid.startswith(A_FEW_WORKERS):
            item.add_marker("long")
        if item.get_closest_marker("long") and not has_wanted(item.path, "long or server"):
            raise pytest.UsageError(f"{item.nodeid} is long, and has_wanted() does not see that in its module")
        if {"database", "postgres", "mariadb"}.intersection(item.fixturenames):
            item.add_marker("databases")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers(config):
    """Three processes for two cores: a long test waits half of its time for a worker, a browser or a deadline."""
    cores = yield
    return cores if config.option.markexpr == "not long" else cores * 3 // 2


@pytest.fixture(scope="session", autouse=True)
def _no_other_redis():
    # A test without the fixture of a server must not connect to a Redis that runs on this machine by chance.
    with override_settings(RTQ={"REDIS": UNREACHABLE}):
        yield


@pytest.fixture(scope="session")
def redis_server():
    """The Redis server of this session; each process of pytest-xdist has its own."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture(scope="session")
def proxy(redis_server):
    """A proxy between the server and the brokers."""
    with FaultProxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
def redis(redis_server, proxy):
    """A client on an empty database. Checks after the test that only our keys and no connections are left."""
    client = Redis.from_url(redis_server.url, protocol=2)
    client.proxy = proxy
    client.flushdb()
    client.load_scripts()
    yield client
    assert not proxy.is_armed, "a connection was to be dropped, but no script came"
    assert not [key for key in client.scan_iter(count=1000) if is_foreign(key)]
    with suppress(AssertionError):  # the next line says which they are
        wait_until(lambda: not client.clients_of_ours())
    assert client.clients_of_ours() == []
    client.close()


@pytest.fixture
def rtq_settings(redis, proxy, request):
    """Settings with the URL of the tests' server, and the options that a module has as RTQ_OPTIONS."""
    options = getattr(request.module, "RTQ_OPTIONS", {})
    with override_settings(RTQ={"REDIS": proxy.url, "LEASE_SECONDS": LEASE_SECONDS, **options}):
        yield


@pytest.fixture
def no_test_runner(monkeypatch):
    """As in a process that runs no tests: settings are not checked less, and no Redis is refused."""
    monkeypatch.setattr("django_rtq.core.conf.config.is_under_test", lambda: False)


@pytest.fixture
def forget_tasks():
    """Tasks that a test declares are forgotten."""
    names, aliases = dict(registry._tasks), dict(registry.ALIASES)
    yield
    for now, before in ((registry._tasks, names), (registry.ALIASES, aliases)):
        now.clear()
        now.update(before)


@pytest.fixture
def no_tasks(monkeypatch):
    """As in a project that has declared none yet."""
    monkeypatch.setattr(registry, "_tasks", {})


@pytest.fixture
def broker(rtq_settings):
    """The broker of this process; its leases are short."""
    broker = for_workers(get_broker())
    yield broker
    broker.close()


@pytest.fixture
def round_trips():
    """The names of the commands of each round trip of this process."""
    trips = []
    command_hooks.append(note := lambda names: trips.append(list(names)) or nullcontext())
    yield trips
    command_hooks.remove(note)


@pytest.fixture
def access(broker):
    """What handles ask in this process."""
    return JobAccess(broker)


@pytest.fixture
def rtq(broker):
    """What commands and pages call, of this process."""
    return pytest.importorskip("django_rtq.console.nouns").rtq


@pytest.fixture
def readers(broker):
    return pytest.importorskip("django_rtq.console.reading.readers").readers_of()


@pytest.fixture
def keys(broker):
    """Those of the queue of most tests."""
    return broker.keys.of(QUEUE)


@pytest.fixture
def limits(readers):
    """The limits of queues and clients, as people change them."""
    return readers.clients.limits


@pytest.fixture
def hour(redis):
    """The present one. A test may end in the next."""
    return redis.time()[0] // 3600


@pytest.fixture
def minute(redis):
    """The present one, of which some time is left."""
    return minute_with_time_left(redis)


@pytest.fixture(scope="session")
def server():
    """A server beside the one that brokers use: what is in it is nobody's business."""
    with PrivateRedis(unix_socket=True) as server:
        yield server


@pytest.fixture(scope="module")
def locked():
    """A server with a password."""
    with PrivateRedis() as server:
        with Redis(port=server.port) as client:
            client.config_set("requirepass", "secret")
        yield server


@pytest.fixture
def empty(server):
    """The same server, without any keys."""
    with Redis(port=server.port) as client:
        client.flushall()
    return server


@pytest.fixture
def factory(monkeypatch):
    """Makes an object importable; gives its dotted path."""

    def register(thing):
        module = ModuleType("rtq_test_factories")
        module.make = thing
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return "rtq_test_factories.make"

    return register


# What holds for a database is proved on SQLite, and with RTQ_DATABASES=all, as in CI, on all of these.
DATABASES = ["sqlite", "postgres", "mariadb"] if os.environ.get("RTQ_DATABASES") == "all" else ["sqlite"]


def server_of_session(database, server):
    """It runs until the end of the session. Without its programs, or if it is not wanted, tests are skipped."""
    if database not in DATABASES:
        pytest.skip(f"{database}: only with RTQ_DATABASES=all")
    try:
        server.__enter__()
    except (PostgresUnavailable, MariaDBUnavailable) as problem:
        pytest.skip(f"{database}: {problem}")
    yield server
    server.__exit__()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server of this session."""
    yield from server_of_session("postgres", PrivatePostgres(unix_socket=True, arguments=["-c", "fsync=off"]))


@pytest.fixture(scope="session")
def mariadb():
    """A MariaDB server of this session."""
    yield from server_of_session("mariadb", PrivateMariaDB())


@pytest.fixture(params=DATABASES)
def database(request, tmp_path, django_db_blocker):
    """An empty database as the default one, on each of DATABASES. Its transactions are real, and its data is there for
    other processes: rtq_worker(environment=database.environment)."""
    if request.param == "sqlite":
        settings = sqlite_settings(tmp_path / "database.sqlite3")
    else:
        settings = request.getfixturevalue(request.param).create_database(f"test_{uuid.uuid4().hex}")
    with django_db_blocker.unblock(), as_default(settings) as database:
        yield database


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("rtq-")]
    assert not left
