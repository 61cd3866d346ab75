"""An operator finds one client among many: sorts, searches and pages the list, also without JavaScript."""

import pytest

from tests.console.browser.actions import follow, shows
from tests.console.browser.chromium import window
from tests.console.browser.conftest import OFTEN, body
from tests.console.browser.test_noisy_client import CLIENTS, row_of
from tests.console.browser.test_pages import overflow
from tests.support.jobs import dead_job, queued_job

REFRESH_SECONDS = OFTEN


@pytest.fixture
def many(broker):
    """More clients than fit on a page. The greatest has a few jobs in each of many queues."""
    for number in range(120):
        queued_job(broker, client=f"client{number:03}", body=body("one"))
    for number in range(6):
        queued_job(broker, client="acme", queue=f"queue{number}", body=body("one"))
    for _ in range(3):
        queued_job(broker, client="florist", body=body("one"))


def names(page):
    """The clients of the list, in its order."""
    return page.locator(".rtq tbody th a").all_inner_texts()


def test_noisy_client_who(many, page):
    page.goto("/admin/django_rtq/queue/")

    follow(page.locator(".rtq-navigation").get_by_role("link", name="Clients"))  # the first click of one

    shows(page.locator(".rtq-pager"), "1–50 of 122")  # noqa: RUF001
    assert names(page)[:2] == ["acme", "florist"]
    shows(row_of(page, "acme"), "6")
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0


def test_the_list_is_sorted_searched_and_paged_without_javascript(many, browser, admin_server):
    with window(browser, admin_server, java_script_enabled=False) as page:
        page.goto(CLIENTS)
        follow(page.get_by_role("columnheader", name="Client").get_by_role("link"))
        assert names(page)[:2] == ["acme", "client000"]
        follow(page.get_by_role("link", name="Next page"))
        shows(page.locator(".rtq-pager"), "51–100 of 122")  # noqa: RUF001
        assert names(page)[0] == "client049"
        follow(page.get_by_role("columnheader", name="Client").get_by_role("link"))
        assert names(page)[0] == "florist"

        page.get_by_label("Part of the name").fill("T11")
        follow(page.locator(".rtq-filter").get_by_role("button", name="Find"))
        assert names(page) == [f"client{number}" for number in range(119, 109, -1)]
        assert "sort=-name" in page.url
        follow(page.get_by_role("link", name="client115"))
        shows(page.locator(".rtq h1"), "Client client115")


def test_a_long_name_wraps_on_a_phone(broker, page):
    name = "w" * 100
    dead_job(broker, client=name)
    queued_job(broker, client=name)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(CLIENTS)
    follow(page.locator(".rtq tbody th a"))
    links = page.locator(".rtq a[href*=www]").evaluate_all("links => links.map(link => link.href)")
    assert len(links) == 5  # cancel, requeue, erase, its jobs in the queue, limits

    for url in (page.url, *links):
        page.goto(url)
        assert overflow(page) <= 0, url
