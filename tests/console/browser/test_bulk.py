"""An operator acts on many jobs at once, in any state."""

import pytest

from tests.console.browser.actions import follow, shows
from tests.console.browser.conftest import body
from tests.console.browser.test_pages import overflow
from tests.support.jobs import QUEUE, queued_job, scheduled_job

LIST = f"/admin/django_rtq/queue/{QUEUE}/"


@pytest.fixture
def many(broker):
    for number in range(30):
        queued_job(broker, client=f"c{number % 3}", body=body(f"order {number}"))
    return [scheduled_job(broker, body=body(f"later {number}")) for number in range(3)]


def test_the_waiting_jobs_of_a_client_are_cancelled_in_three_clicks(many, page, readers):
    page.goto(f"{LIST}?q=client:c1")
    follow(page.get_by_role("link", name="Cancel all matching …"))
    shows(page.locator(".rtq"), "Cancel 10 queued jobs?")
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0

    follow(page.get_by_role("button", name="Cancel jobs"))

    shows(page.locator(".messagelist"), "10 jobs were cancelled.")
    assert readers.queues.get(QUEUE).queued == 20
