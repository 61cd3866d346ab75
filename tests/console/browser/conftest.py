"""A browser, an admin server, and jobs in every state."""

import json
from types import SimpleNamespace

import pytest
import redis as redis_py
from django.test import override_settings

from django_rtq.core.broker.brokers import get_broker
from django_rtq.core.broker.worker_broker import for_workers
from testproject.redis_server import PrivateRedis
from tests.console.browser.admin_server import AdminServer, refresh_every
from tests.console.browser.chromium import TIMEOUT_MS, chromium, log_in, new_context
from tests.core.worker.conftest import journal  # noqa: F401
from tests.core.worker.processes import WorkerProcess
from tests.support.databases import as_default, sqlite_settings
from tests.support.jobs import claimed_job, dead_job, finished_job, queued_job, retrying_job, scheduled_job

NOTE = "tests.app.tasks.note"
OFTEN, STILL = 0.3, 60  # seconds between two refreshes of a page. A page that holds still can be examined
HOSTILE = "<script>alert(1)</script>\u202e\x07" + "w" * 3000


@pytest.fixture(scope="package")
def redis_server():
    """A server for these tests, because the admin servers stay connected between tests."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def broker(redis_server):
    """The broker of this process, with an empty database."""
    with redis_py.Redis.from_url(redis_server.url) as client:
        client.flushdb()
    with override_settings(RTQ={"REDIS": redis_server.url}):
        broker = for_workers(get_broker())
        yield broker
        broker.close()


@pytest.fixture(scope="package")
def admin_servers(redis_server, tmp_path_factory):
    """Start an admin server with this environment, or return the one that runs: each is started once."""
    started, folder = {}, tmp_path_factory.mktemp("admin_server")

    def server_with(**environment):
        name = json.dumps(environment)
        if name not in started:
            started[name] = AdminServer(folder, redis_server.url, **environment)
        return started[name].start()

    yield server_with
    for admin_server in started.values():
        admin_server.stop()


@pytest.fixture
def admin_server(request, admin_servers):
    """An admin server whose pages refresh OFTEN or not at all, as the module says, with its OPTIONS if it has any."""
    seconds = getattr(request.module, "REFRESH_SECONDS", STILL)
    return admin_servers(**refresh_every(seconds, **getattr(request.module, "OPTIONS", {})))


@pytest.fixture
def worker(admin_server, journal, tmp_path):  # noqa: F811
    """Starts a real worker, with the settings and the database of the admin server."""
    started = []

    def start(*arguments):
        environment = {**admin_server.environment, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        started.append(WorkerProcess(["--processes", "1", *arguments], environment, tmp_path / "worker.log"))

    yield start
    for process in started:
        process.end()


@pytest.fixture
def database(admin_server, django_db_blocker, monkeypatch):
    """The database of the admin server and of its workers is that of this process, too."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # the browser has its event loop in this thread
    with django_db_blocker.unblock(), as_default(sqlite_settings(admin_server.database)) as database:
        yield database


@pytest.fixture(scope="package")
def browser():
    """Closed after these tests, and its event loop too: other tests have their own loops."""
    from playwright.sync_api import expect

    expect.set_options(timeout=TIMEOUT_MS)
    with chromium() as browser:
        yield browser


@pytest.fixture
def console_errors():
    """Warnings and errors in the browser's console. Clear it in tests that expect some."""
    return []


@pytest.fixture(scope="package")
def contexts(browser):
    """The contexts of pages by the URL of their server: each costs a process of Chromium."""
    opened = {}
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture
def page(browser, contexts, admin_server, console_errors):
    """A page for a superuser. Fails if the console shows warnings or errors."""

    def hear(said):
        is_ours = not said.location["url"].endswith("/favicon.ico")  # the testproject has none
        if said.type in ("error", "warning") and is_ours:
            console_errors.append(said.text)

    if admin_server.url not in contexts:
        contexts[admin_server.url] = new_context(browser, admin_server)
    log_in(contexts[admin_server.url], admin_server)
    with contexts[admin_server.url].new_page() as page:
        page.on("console", hear)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        yield page
        if page.url.startswith(admin_server.url):
            page.evaluate("localStorage.clear()")
    assert console_errors == []


@pytest.fixture
def jobs(broker):
    """A job in each state, some with hostile data."""
    return SimpleNamespace(
        dead=dead_job(broker, "dead", body=body("dead"), client="bakery"),
        worst=dead_job(broker, "worst", body=body(HOSTILE), client=HOSTILE[:200]),
        retrying=retrying_job(broker, "retrying", body=body("retrying"), client="bakery"),
        finished=finished_job(broker, "finished", body=body("finished")),
        scheduled=scheduled_job(broker, "scheduled", body=body("scheduled"), client="florist"),
        queued=queued_job(broker, "queued", body=body("queued"), client="florist"),
        running=claimed_job(broker, "running", queue="other", body=body("running")),
    )


def body(name, task=NOTE):
    """The JSON body of a job that writes a name to the journal."""
    return json.dumps({"task": task, "args": [name], "kwargs": {}}, separators=(",", ":"))
