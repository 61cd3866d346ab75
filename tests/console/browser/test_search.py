"""An operator searches for jobs over all queues and states, and acts on what was found."""

import pytest

from tests.console.browser.actions import find, follow, shows
from tests.console.browser.conftest import body
from tests.console.browser.test_pages import overflow, violations
from tests.support.commands import dead_letter, failure
from tests.support.jobs import QUEUE, dead_job, new_job, queued_job

SEARCH = "/admin/django_rtq/job/search/"


@pytest.fixture
def orders(broker):
    """Jobs about order 4711 in two queues, among others."""
    for number in range(30):
        dead_job(broker, body=body(f"order {number}"))
    return [
        dead_job(broker, body=body("order 4711"), client="bakery"),
        queued_job(broker, body=body("order 4711"), queue="mail", client="bakery"),
    ]


def test_all_jobs_about_one_order_are_found_with_one_line(orders, page):
    find(page, '"order 4711"')

    rows = page.locator(".rtq tbody tr")
    assert rows.count() == 2
    shows(rows.first, "dead")
    shows(rows.last, "mail")
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0
    follow(rows.first.locator("th a"))
    shows(page.locator("#rtq-id"), orders[0].id)


def test_a_mistake_in_a_query_is_explained_and_corrected(orders, page):
    page.goto(f"{SEARCH}?q=klient:bakery")
    shows(page.get_by_role("alert"), "klient:bakery: there is no such field")
    shows(page.get_by_role("alert"), "Did you mean client?")
    assert violations(page) == []

    page.get_by_label("Search jobs").fill("client:bakery state:dead")
    follow(page.get_by_role("button", name="Find"))

    assert page.locator(".rtq tbody tr").count() == 1


def test_the_key_types_a_slash_where_somebody_writes(orders, page):
    page.goto("/admin/django_rtq/queue/mail/")
    page.get_by_label("Search jobs").fill("")
    page.keyboard.type("a/b")

    assert page.get_by_label("Search jobs").input_value() == "a/b"


def test_a_list_is_narrowed_by_chips_and_in_the_box_alike(broker, page):
    for client in ("bakery", "florist"):
        dead_letter(broker, line=failure("shop.errors.NoStock", "no stock"), client=client)
    page.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=dead")
    page.locator(".rtq-chips summary").filter(has_text="Client").click()
    follow(page.get_by_role("link", name="florist"))

    box, rows = page.get_by_label("Search jobs"), page.locator(".rtq-cards tbody tr")
    assert box.input_value() == f"queue:{QUEUE} state:dead client:florist"
    assert rows.count() == 1
    box.fill(f"queue:{QUEUE} state:dead class:NoStock")
    follow(page.get_by_role("button", name="Find"))
    assert rows.count() == 2
    follow(page.get_by_role("link", name="class:NoStock"))
    assert box.input_value() == f"queue:{QUEUE} state:dead"


def test_a_job_is_requeued_by_the_menu_of_its_row(broker, page, readers):
    dead_letter(broker, line=failure("shop.errors.NoStock", "no stock"))
    page.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=dead")
    page.locator(".rtq-cards tbody summary").click()
    assert violations(page) == []
    assert overflow(page) <= 0
    follow(page.get_by_role("button", name="Requeue", exact=True))
    shows(page.locator(".messagelist"), "was requeued")
    assert readers.queues.get(QUEUE).queued == 1
    assert page.url.endswith("?state=dead")


def test_the_failures_of_the_last_hour_with_one_error_are_requeued(broker, page, readers):
    for number in range(3):
        dead_letter(broker, line=failure("shop.errors.NoStock", "no stock"), args=[number])
    dead_letter(broker, line=failure("shop.errors.NoMoney", "no money"))
    find(page, "state:dead error:NoStock since:1h")

    follow(page.get_by_role("link", name=f"Dead in {QUEUE}"))  # the first click
    assert page.locator(".rtq tbody tr").filter(has_text="NoStock").count() == 3
    follow(page.get_by_role("link", name="Requeue all matching"))
    shows(page.locator(".rtq"), "Requeue 3 dead letters")
    follow(page.get_by_role("button", name="Requeue"))  # the third click
    shows(page.locator(".messagelist"), "3")
    assert readers.queues.get(QUEUE).dead == 1


@pytest.fixture
def many(broker):
    """More jobs than one request looks at; the last one is about order 4711."""
    for start in range(0, 12_000, 1000):
        broker.enqueue(QUEUE, [new_job(body=body(f"order {number}")) for number in range(start, start + 1000)])
    queued_job(broker, body=body("the last order 4711"))


def test_a_search_of_many_jobs_goes_on_by_itself_until_it_finds_one(many, page):
    page.goto(f"{SEARCH}?q=%22the+last+order%22")

    page.wait_for_url("**seen=10000*")
    shows(page.locator(".rtq tbody tr"), "queued")
