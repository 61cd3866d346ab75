"""Each action is done from the page that offers it with keys alone, in a browser that runs no scripts."""

import pytest

from django_rtq.core.broker.worker_broker import worker_info_commands
from tests.console.admin.conftest import MAIL, every_page, url_of
from tests.console.browser.admin_server import refresh_every
from tests.console.browser.chromium import new_context
from tests.console.browser.conftest import STILL
from tests.protocol.model.step_calls import waiting_job
from tests.support.jobs import QUEUE, let_lapse
from tests.support.workflows import blocked_flow

ACTS = [name for name, page in every_page() if page.method != "GET"]
LIST = f"/admin/django_rtq/queue/{QUEUE}/?state="
PAGES = {
    "client": (client := "/admin/django_rtq/client/client/?client=florist"),
    "worker": "/admin/django_rtq/worker/",
    "job_bulk_erase": client,
    **{f"job_bulk_{verb}": f"{LIST}dead" for verb in ("requeue", "discard")},
    "job_bulk_terminate": "/admin/django_rtq/queue/other/?state=running",
    **{f"job_bulk_{verb}": f"{LIST}scheduled" for verb in ("cancel", "run_now", "purge")},
}
TYPED = {
    "queue_forget": {"name": "mail"},
    "job_bulk_purge": {"name": QUEUE},
    "job_edit": {"args": '["other"]'},
    "job_send": {"value": "7"},
    **{name: {"max_running": "3"} for name in ("client_limits", "queue_limits", "queue_limit_clients")},
    "registeredtask_enqueue": {"args": '["bakery", 9]'},
}


@pytest.fixture
def path(name, broker, rtq, request):
    """The path of the action, which something can be done with."""
    sent = [waiting_job(broker)] if name == "job_send" else []
    jobs = request.getfixturevalue("jobs")
    jobs.running = sent[0] if sent else jobs.running
    blocked_flow(broker)
    broker.register_queues(["mail"])
    note = {"supervisor_name": "s1", "host": "here", "pid": 7, "queues": QUEUE}
    note |= {"quiet": "1"} if name.startswith("worker_wake") else {}
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w1": note})))
    if name == "worker_reclaim":
        for queue in (QUEUE, "other", "flows"):
            let_lapse(broker, "w1", queue=queue)
    if name.endswith("resume"):
        rtq.queues[QUEUE].pause()
        rtq.tasks[MAIL].pause(QUEUE)
        rtq.clients["florist"].pause(QUEUE)
    return url_of(name, jobs).partition("?")[0]


@pytest.fixture(scope="module")
def scriptless(browser, admin_servers):
    """A browser context that runs no scripts, logged in to the admin."""
    context = new_context(browser, admin_servers(**refresh_every(STILL)), java_script_enabled=False)
    yield context
    context.close()


def press(page, control):
    """Go to a link or a button by the tabulator, and press it."""
    element = control.element_handle()
    for _ in range(150):
        page.keyboard.press("Tab")
        if element.evaluate("each => each === document.activeElement"):
            return page.keyboard.press("Enter")
    raise AssertionError(f"{control} is not reached")


@pytest.mark.parametrize("name", ACTS)
def test_keys_alone_are_enough(name, path, scriptless):
    with scriptless.new_page() as page:
        parent = f"{path.rstrip('/').rpartition('/')[0]}/"
        page.goto(PAGES.get(name) or PAGES.get(name.partition("_")[0], parent))
        control = page.locator(
            f".rtq :is(a[href^='{path}'], [formaction^='{path}'], form[action^='{path}'] button)"
        ).last
        for menu in control.locator("xpath=ancestor::details/summary").all():
            press(page, menu)
        with page.expect_navigation():
            press(page, control)
        for field, text in TYPED.get(name, {}).items():
            page.locator(f".rtq [name={field}]").fill(text)
        if not page.locator(".messagelist").count():  # the page asks
            with page.expect_navigation():
                press(page, page.locator(".rtq form:not([role=search]) button[type=submit]").first)
        assert page.locator(".messagelist .success").count() == 1
