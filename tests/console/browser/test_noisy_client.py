"""An operator finds the client that keeps the workers busy, sees why it waits, pauses it, and cancels its jobs."""

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.console.browser.actions import follow, menu_of, shows
from tests.console.browser.conftest import OFTEN, body
from tests.console.browser.test_pages import covered, cut_off, violations
from tests.support.jobs import QUEUE, claim, claimed_job, queued_job

REFRESH_SECONDS = OFTEN
CLIENTS = "/admin/django_rtq/client/"


@pytest.fixture
def flood(broker, rtq):
    """A client with many jobs that has used most of the workers' time, beside one with two."""
    for client in ("acme", "florist"):
        claimed_job(broker, client=client, body=body(client))
    rtq.queues[QUEUE].limit_clients(max_running=1)
    jobs = [queued_job(broker, client="acme", body=body(f"acme{n}")) for n in range(120)]
    jobs += [queued_job(broker, client="acme", queue="low", body=body("low"))]
    for _ in range(2):
        queued_job(broker, client="florist", body=body("florist"))
    assert claim(broker, 5) == []  # both are at their limits
    broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, 0, "acme", 90, 60_000_000, "florist", 10, 2_000_000)]))
    return jobs


def row_of(page, name):
    """The row of a client or of a queue in a table."""
    return page.locator(".rtq tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))


def test_the_noisy_client_is_first_and_stands_beside_its_fair_share(flood, page):
    page.goto(CLIENTS)

    assert page.locator(".rtq tbody tr th a").first.inner_text() == "acme"
    for text in ("121", "90 %", "50 %", "at its limit of 1 running job"):
        shows(row_of(page, "acme"), text)
    shows(row_of(page, "florist"), "10 %")


def test_it_is_seen_why_its_jobs_wait(flood, page):
    page.goto(CLIENTS)
    follow(page.get_by_role("link", name="acme"))
    shows(row_of(page, QUEUE), "at its limit of 1 running job")
    follow(row_of(page, QUEUE).get_by_role("link", name=QUEUE))
    follow(page.locator(".rtq-id a").first)
    shows(page.locator(".rtq-why"), "Its client is at its limit of 1 running job.")
    follow(page.get_by_role("link", name="acme"))
    page.wait_for_url("**/client/client/?client=acme")


def test_all_its_buttons_are_seen_on_a_wide_screen(flood, broker, page, rtq):
    rtq.queues["messages"].limit_clients(max_running=1)
    for _ in range(120):
        queued_job(broker, client="acme", queue="messages", body=body("acme"))
    claim(broker, 1, queues=["messages"])
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{CLIENTS}client/?client=acme")
    menu_of(row_of(page, "messages"))
    assert row_of(page, "messages").locator("button, a.rtq-button").filter(visible=True).count() == 2
    assert cut_off(page) == []
    assert covered(page) == []


def test_it_is_paused_and_gets_another_limit(flood, page, readers):
    page.goto(f"{CLIENTS}client/?client=acme")
    follow(page.get_by_role("button", name="Pause in all queues"))
    shows(page.locator(".messagelist"), "Client acme is paused in default, low.")
    shows(row_of(page, QUEUE), "paused by ")

    follow(menu_of(row_of(page, QUEUE)).get_by_role("link", name="Limits …"))
    page.get_by_label("Running jobs").fill("many")
    follow(page.get_by_role("button", name="Save"))
    shows(page.locator(".rtq"), "'many' is not a whole number from 0 on, 'none' or 'settings'.")
    assert violations(page) == []
    page.get_by_label("Running jobs").fill("3")
    follow(page.get_by_role("button", name="Save"))
    shows(row_of(page, QUEUE), "Running jobs: 3")
    assert readers.clients.limits(QUEUE).clients["acme"].limits["max_running"].value == 3

    follow(page.get_by_role("button", name="Resume in all queues"))
    shows(page.locator(".messagelist"), "Client acme was resumed in default, low.")
    page.goto(CLIENTS)
    assert "paused" not in row_of(page, "acme").inner_text()
