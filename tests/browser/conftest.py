"""A browser, an admin server, and jobs in every state."""

import json
from types import SimpleNamespace

import pytest
import redis as redis_py
from django.test import override_settings

from django_rtq.broker.broker import get_broker
from testproject.redis_server import PrivateRedis
from tests.browser.admin_server import AdminServer, refresh_every
from tests.browser.chromium import TIMEOUT_MS, chromium, window
from tests.support.jobs import claimed_job, dead_job, finished_job, queued_job, retrying_job, scheduled_job

NOTE = "tests.app.tasks.note"
HOSTILE = "<script>alert(1)</script>\u202e\x07" + "w" * 3000


@pytest.fixture(scope="module")
def redis_server():
    """A server for this module, because the admin server stays connected between tests."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture
def broker(redis_server):
    """The broker of this process, with an empty database."""
    with redis_py.Redis.from_url(redis_server.url) as client:
        client.flushdb()
    with override_settings(RTQ={"REDIS": redis_server.url}):
        broker = get_broker()
        yield broker
        broker.close()


@pytest.fixture(scope="module")
def admin_server(request, redis_server, tmp_path_factory):
    """The admin server, with the refresh interval of the module, and its OPTIONS if it has any."""
    often = refresh_every(request.module.REFRESH_SECONDS, **getattr(request.module, "OPTIONS", {}))
    admin_server = AdminServer(tmp_path_factory.mktemp("admin_server"), redis_server.url, **often)
    yield admin_server.start()
    admin_server.stop()


@pytest.fixture(scope="module")
def browser():
    """Closed after the module, and its event loop too: other tests have their own loops."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", autouse=True)
def _patience(browser):
    from playwright.sync_api import expect

    expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture
def console_errors():
    """Warnings and errors in the browser's console. Clear it in tests that expect some."""
    return []


@pytest.fixture
def page(browser, admin_server, console_errors):
    """A page for a superuser. Fails if the console shows warnings or errors."""

    def hear(said):
        is_ours = not said.location["url"].endswith("/favicon.ico")  # the testproject has none
        if said.type in ("error", "warning") and is_ours:
            console_errors.append(said.text)

    with window(browser, admin_server) as page:
        page.on("console", hear)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        yield page
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
