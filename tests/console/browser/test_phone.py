"""A phone at three in the morning: what is wrong, the groups of dead letters, and their requeue fit on its screen."""

import pytest

from django_rtq import rtq
from tests.console.browser.actions import follow, menu_of, shows
from tests.console.browser.test_pages import overflow, overflow_of_tables, violations
from tests.support.commands import dead_letter, failure
from tests.support.jobs import QUEUE, queued_job

LONG = "the payment service of bookshop-13 does not answer: HTTP 503 Service Unavailable " * 3


@pytest.fixture
def phone(broker, page):
    """A phone, and an incident: two groups of dead letters, and a paused queue with a long name."""
    for number in range(12):
        line = failure("shop.payments.errors.OutOfOrder", LONG)
        dead_letter(
            broker, line=line, client=f"bookshop-{number}", task="shop.payments.tasks.charge_order", args=[number]
        )
    dead_letter(broker, queue="pictures", task="shop.pictures.tasks.resize_picture")
    queued_job(broker, queue="exports_of_the_whole_catalogue_for_all_partners")
    rtq.queues["pictures"].pause()
    page.set_viewport_size({"width": 390, "height": 844})
    return page


def assert_fits(page):
    """Nothing scrolls sideways, neither the page nor a table."""
    assert max(overflow(page), overflow_of_tables(page)) <= 0


def test_a_phone_at_three_in_the_morning(phone, readers):
    phone.goto("/admin/django_rtq/queue/")

    shows(phone.locator(".rtq-health"), "12 jobs died in the last hour")
    assert_fits(phone)
    headings = phone.locator(".rtq-figures thead th").filter(visible=True).all_inner_texts()
    assert [" ".join(text.split()) for text in headings] == [
        "Queue",
        "Queued",
        "Oldest wait",
        "Dead",
        "Failed/min",
        "Actions",
    ]

    follow(phone.locator(".rtq-navigation").get_by_role("link", name="Dead letters"))  # the first click
    group = phone.locator(".rtq-cards tbody tr").filter(has_text="charge_order")
    shows(group, "OutOfOrder")
    shows(group, "HTTP 503 Service Unavailable")
    assert_fits(phone)
    assert violations(phone) == []

    menu_of(group)
    assert_fits(phone)
    follow(group.get_by_role("link", name="Requeue …"))
    shows(phone.locator(".rtq"), "Requeue 12 dead letters?")
    assert_fits(phone)
    follow(phone.get_by_role("button", name="Requeue"))  # after three clicks
    shows(phone.locator(".messagelist"), "12")
    assert readers.queues.get(QUEUE).dead == 0


def test_a_list_of_dead_letters_is_a_list_of_cards(phone):
    phone.goto(f"/admin/django_rtq/queue/{QUEUE}/?state=dead")

    assert_fits(phone)
    cards = phone.locator(".rtq-cards").first.locator("tbody tr")
    assert cards.count() == 12
    assert all(cards.nth(place).bounding_box()["height"] < 150 for place in range(12))
    shows(cards.first, "OutOfOrder")
