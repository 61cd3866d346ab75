"""I discarded the wrong group: an operator takes it back."""

import pytest

from tests.broker.test_filter_jobs import bury
from tests.browser.actions import follow, shows
from tests.browser.conftest import NOTE, body
from tests.browser.test_pages import assert_colours_are_readable, overflow, violations
from tests.support.jobs import QUEUE, queued_job

DEAD = "/admin/django_rtq/deadletter/"


@pytest.fixture
def groups(broker):
    """Two groups of dead letters."""
    for _ in range(30):
        bury(broker, NOTE, kind="shop.errors.OutOfOrder", message="no answer")
    for _ in range(3):
        bury(broker, NOTE, kind="shop.errors.NoStock", message="sold out")


def discard_the_wrong_group(page):
    """Two clicks."""
    page.goto(DEAD)
    follow(page.locator(".rtq tbody tr").filter(has_text="NoStock").get_by_role("link", name="Discard …"))
    shows(page.locator(".rtq"), "You can undo this for 30 seconds.")
    follow(page.get_by_role("button", name="Discard"))
    shows(page.locator(".messagelist"), "3 dead letters were discarded.")


def test_i_discarded_the_wrong_group(groups, page, inspector):
    discard_the_wrong_group(page)
    assert inspector.queues.get(QUEUE).dead == 30

    follow(page.get_by_role("button", name="Undo"))  # the third click

    shows(page.locator(".messagelist"), "Undone: 3 jobs are back.")
    shows(page.locator(".rtq tbody"), "NoStock")
    assert inspector.queues.get(QUEUE).dead == 33


def test_the_button_can_be_seen_and_reached_in_the_dark_and_on_a_phone(groups, page, broker):
    discard_the_wrong_group(page)
    for key in broker.redis.execute_one(("KEYS", "*undo*")):
        broker.redis.execute_one(("PEXPIRE", key, 600_000))  # axe may take longer than the 30 s of the offer
    assert violations(page) == []
    assert_colours_are_readable(page, of=".messagelist")
    assert overflow(page) <= 0

    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")

    shows(page.locator(".messagelist"), "Undone: 3 jobs are back.")


def test_too_late(groups, page, broker):
    discard_the_wrong_group(page)
    for key in broker.redis.execute_one(("KEYS", "*undo*")):
        broker.redis.execute_one(("DEL", key))

    follow(page.get_by_role("button", name="Undo"))

    shows(page.locator(".messagelist"), "Nothing was undone: the 30 seconds for it are over")


def test_i_purged_the_wrong_queue(broker, page, inspector):
    for number in range(12):
        queued_job(broker, client=f"c{number % 3}", body=body(f"order {number}"))
    page.goto(f"/admin/django_rtq/queue/{QUEUE}/purge/")
    shows(page.locator(".rtq"), "You can undo this for 30 seconds.")
    page.locator("#rtq-name").fill(QUEUE)
    follow(page.get_by_role("button", name="Purge"))
    shows(page.locator(".messagelist"), "12 jobs were purged.")
    assert inspector.queues.get(QUEUE).queued == 0

    follow(page.get_by_role("button", name="Undo"))  # the second click

    shows(page.locator(".messagelist"), "Undone: 12 jobs are back.")
    assert inspector.queues.get(QUEUE).queued == 12
