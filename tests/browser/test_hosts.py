"""An operator drains a host before it is switched off, with a real worker."""

import json
import socket

import pytest

from django_rtq.admin.urls import page_url
from tests.browser.actions import follow, shows
from tests.browser.conftest import OFTEN
from tests.browser.test_pages import assert_colours_are_readable, overflow
from tests.support.jobs import QUEUE, new_job
from tests.support.waiting import wait_until
from tests.worker.processes import WorkerProcess

REFRESH_SECONDS = OFTEN
GATED = json.dumps({"task": "tests.app.tasks.gate", "args": ["running", "gate"], "kwargs": {}})


@pytest.fixture
def host(broker, redis_server, tmp_path):
    """A worker with two processes on this machine, one of which runs a job that waits for a gate. Opens the gate."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RTQ_REDIS_URL": redis_server.url,
        "RTQ_DATABASE": str(tmp_path / "worker.sqlite3"),
        "RTQ_TEST_JOURNAL": str(tmp_path / "journal"),
    }
    broker.enqueue(QUEUE, [new_job("gated", body=GATED)])
    worker = WorkerProcess(["--processes", "2"], environment, tmp_path / "worker.log")
    wait_until((tmp_path / "journal").exists)
    yield (tmp_path / "gate").touch
    worker.end()


def test_drain_host_a(host, inspector, page):
    wait_until(lambda: [bool(each.supervisor_name) for each in inspector.workers()] == [True, True])
    page.goto("/admin/django_rtq/queue/")

    follow(page.locator(".rtq-navigation").get_by_role("link", name="Workers"))
    follow(page.get_by_role("link", name=socket.gethostname()))
    follow(page.get_by_role("button", name="Quiet all"))  # the third click, and the last

    banner = page.locator(".rtq-banner")
    shows(banner, "Not drained yet. 1 job still runs on it.")
    shows(page.locator(".rtq"), "gate")  # which job that is
    host()
    shows(banner, "Drained: all processes are quiet, and no job runs on them. The host can be switched off.")
    assert_colours_are_readable(page, of=".rtq")
    assert overflow(page) <= 0

    follow(page.get_by_role("button", name="Wake all"))
    page.get_by_role("button", name="Quiet all").wait_for()
    shows(page.locator(".messagelist"), "were asked to start new jobs again")
    assert banner.count() == 0


def test_a_host_is_stopped_after_a_question(host, inspector, page):
    wait_until(lambda: [bool(each.supervisor_name) for each in inspector.workers()] == [True, True])
    host()
    page.goto(page_url("admin", "worker_host", socket.gethostname()))

    follow(page.get_by_role("link", name="Stop all …"))
    shows(page.locator(".rtq-banner"), "This stops 1 rtq_worker of host")
    follow(page.get_by_role("button", name="Stop all"))

    shows(page.locator(".messagelist"), "were asked to stop")
    shows(page.locator(".rtq-banner"), "No worker process is known on this host")
