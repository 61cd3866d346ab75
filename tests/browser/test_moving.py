"""Reports are stuck behind a flood: an operator moves them to another queue."""

import pytest

from tests.browser.actions import follow, shows
from tests.browser.conftest import body
from tests.browser.test_pages import overflow
from tests.support.jobs import QUEUE, queued_job

OVERVIEW = "/admin/django_rtq/queue/"
LIST = f"/admin/django_rtq/queue/{QUEUE}/"
REPORT = '{"task":"shop.tasks.make_report"}'


@pytest.fixture
def flood(broker):
    """Five reports between forty other jobs, and a queue of their own."""
    broker.register_queues(["reports"])
    for number in range(40):
        queued_job(broker, body=body(f"order {number}"))
        if number % 8 == 0:
            queued_job(broker, body=REPORT)


def test_reports_that_are_stuck_behind_a_flood_are_moved_in_three_clicks(flood, page, inspector):
    page.goto(OVERVIEW)
    follow(page.get_by_role("link", name=QUEUE, exact=True))
    page.get_by_label("Task", exact=True).fill("make_report")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    follow(page.get_by_role("link", name="Move all matching …"))
    shows(page.locator(".rtq"), "Move 5 queued jobs to another queue?")
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0

    page.get_by_label("To queue:").select_option("reports")
    follow(page.get_by_role("button", name="Move", exact=True))  # the third click

    shows(page.locator(".messagelist"), "5 jobs were moved to queue reports.")
    shows(page.locator(".messagelist"), "No worker serves queue reports now")
    assert [inspector.queues.get(name).queued for name in (QUEUE, "reports")] == [40, 5]


def test_one_job_is_moved_from_its_page(flood, broker, page, inspector):
    job = queued_job(broker, body=REPORT)
    page.goto(f"/admin/django_rtq/job/{job.id}/")
    follow(page.get_by_role("link", name="Move to another queue …"))
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0

    page.get_by_label("To queue:").select_option("reports")
    follow(page.get_by_role("button", name="Move", exact=True))

    shows(page.locator(".messagelist"), "was moved to queue reports.")
    shows(page.locator(".rtq-why"), "No worker")
    assert inspector.find(job.id).queue == "reports"


def test_selected_jobs_are_moved(flood, page, inspector):
    page.goto(f"{LIST}?task=make_report")
    for box in page.locator("td input[name='id']").all()[:2]:
        box.click()
    follow(page.get_by_role("button", name="Move selected …"))

    page.get_by_label("To queue:").select_option("reports")
    follow(page.get_by_role("button", name="Move", exact=True))

    shows(page.locator(".messagelist"), "2 jobs were moved to queue reports.")
    assert inspector.queues.get("reports").queued == 2


def test_long_names_of_queues_fit_on_a_phone(broker, page):
    broker.register_queues(["exports_of_the_whole_catalogue_for_all_our_partners_and_friends"])
    job = queued_job(broker)
    page.set_viewport_size({"width": 390, "height": 800})
    for url in (
        f"/admin/django_rtq/job/{job.id}/move/",
        f"/admin/django_rtq/job/bulk/move-all/?queue={QUEUE}&state=queued",
    ):
        page.goto(url)
        shows(page.locator(".rtq"), "To queue:")
        assert overflow(page) <= 0
