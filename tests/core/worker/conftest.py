"""Fixtures: real workers, the journal that their jobs write, and a check that no job was lost."""

import fcntl
import itertools
import json
from contextlib import contextmanager

import pytest
from django.db import connections
from django.test import override_settings

from django_rtq import signals
from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.worker.process.session import WorkerSession
from django_rtq.core.worker.shared_memory import SharedState
from testproject.redis_server import PrivateRedis
from tests.app import journal as journals
from tests.app import tasks  # noqa: F401 - so that they are registered here as well
from tests.core.worker.conservation import assert_conserved
from tests.core.worker.processes import WorkerProcess
from tests.support.jobs import QUEUE, receiving
from tests.support.redis_server import Redis
from tests.support.waiting import PATIENCE, wait_until


class Journal:
    """What jobs wrote, and the gates that they wait at."""

    def __init__(self, folder):
        self._folder = folder
        self.path = folder / "journal"

    def open(self, gate):
        """Let the jobs go on that wait at this gate."""
        (self._folder / gate).touch()

    @contextmanager
    def locked(self, file):
        """Jobs that lock this file wait meanwhile."""
        with (self._folder / file).open("w") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            yield

    def entries(self, word, name=None):
        return [e for e in journals.read(self.path) if e.word == word and name in (None, e.name)]

    def starts(self, name=None):
        return len(self.entries("start", name))

    def ends(self, name=None):
        return len(self.entries("end", name))

    def names(self, word="start"):
        return [entry.name for entry in self.entries(word)]

    def wait(self, word, name, times=1, seconds=PATIENCE):
        """Until the line is there so many times. Returns the last of them."""
        wait_until(lambda: len(self.entries(word, name)) >= times, seconds)
        return self.entries(word, name)[times - 1]

    def begin(self, task, name, *arguments):
        """Send a job, and wait for its start."""
        handle = task.delay(name, *arguments)
        self.wait("start", name)
        return handle


@pytest.fixture(autouse=True)
def databases_of_the_session():
    """Forks drop the database connections of their thread. The one to the test database in memory must not be lost: it
    cannot be closed, and Python warns of it when it is collected."""
    before = connections.all(initialized_only=True)
    yield
    for connection in before:
        connections[connection.alias] = connection


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """What the jobs of this test write."""
    journal = Journal(tmp_path)
    monkeypatch.setenv(journals.FILE, str(journal.path))
    return journal


@pytest.fixture
def shared():
    """The memory that a process of one slot shares with its supervisor."""
    return SharedState(1)


# Of a worker: it waits for minutes, and only what wakes it ends the wait. See tests/app/long_waits.py.
LONG_WAITS = {"LEASE_SECONDS": 1000, "TASK_MODULES": ["tasks", "long_waits"]}


@pytest.fixture
def rtq_worker(redis, redis_server, broker, journal, tmp_path):
    """Start a worker: rtq_worker("--processes", 2, LEASE_SECONDS=1). It is ended with the test."""
    started, numbers = [], itertools.count(1)

    def start(*arguments, url=redis_server.url, is_ready=True, environment=None, command="rtq_worker", **options):
        worker = WorkerProcess(
            arguments,
            {
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "RTQ_REDIS_URL": url,
                "RTQ_DATABASE": str(tmp_path / "db.sqlite3"),
                "RTQ_TEST_OPTIONS": json.dumps(options),
                **(environment or {}),
            },
            tmp_path / f"worker-{next(numbers)}.log",
            command,
        )
        started.append(worker)
        if is_ready:
            wait_until(lambda: has_signed_on(redis, worker) or not worker.is_running)
        return worker

    yield start
    for worker in started:
        worker.end()
    assert_conserved(redis)


def has_signed_on(redis, worker):
    """Whether all children of a worker take part, in whatever queue, and it is known whose they are."""
    children = worker.children
    if len(children) != worker.processes:
        return False
    names = [name for key in redis.scan_iter("*:workers") for name in redis.zrange(key, 0, -1)]
    known = [name for name in names if redis.exists(b"rtq:worker:" + name)]
    return {int(name.split(b":")[-2]) for name in known}.issuperset(children)


@pytest.fixture
def fragile():
    """A server of this test alone: it keeps its data when it is killed."""
    with PrivateRedis(appendonly=True, arguments=["--appendfsync", "always"]) as server:
        yield server


@pytest.fixture
def client(fragile):
    """A client of it; the broker of this process uses it, too."""
    client = Redis.from_url(fragile.url, protocol=2)
    with override_settings(RTQ={"REDIS": fragile.url, "LEASE_SECONDS": 1.0}):
        yield client
        get_broker().close()
    client.close()


@pytest.fixture
def start(rtq_worker, fragile, client):
    """Start a worker on the fragile server. All are ended before it is."""
    started = []

    def start(*arguments, query="", **options):
        options = {"LEASE_SECONDS": 1.0, **options}
        worker = rtq_worker(*arguments, url=fragile.url + query, is_ready=False, **options)
        started.append(worker)
        wait_until(lambda: has_signed_on(client, worker))
        return worker

    yield start
    for worker in started:
        worker.end()


@pytest.fixture
def session(broker):
    """Its thread leaves it alone: nothing is compared unless the test says so."""
    session = WorkerSession(broker, SharedState(1), [QUEUE], base_name="host")
    session._reconciler._lease_seconds = 3600.0
    session.sign_on()
    yield session
    session.close()


@pytest.fixture
def stale():
    """What was said to have come too late."""
    found = []
    with receiving(lambda job_ids, **_: found.extend(job_ids), signals.job_stale):
        yield found
