"""A deploy broke task Y: stop Y everywhere, fix it, and requeue what died."""

import pytest

from tests.broker.test_filter_jobs import bury
from tests.broker.test_task_metrics import tell
from tests.browser.conftest import NOTE, body
from tests.browser.test_flows import shows
from tests.browser.test_pages import overflow, violations
from tests.support.jobs import QUEUE, claim, claim_all, queued_job

REFRESH_SECONDS = 0.5
SLEEP = "tests.app.tasks.sleep"


@pytest.fixture
def broken(broker):
    """A task that fails in two queues, with jobs that wait, and another task behind them."""
    dead = [bury(broker, NOTE) for _ in range(2)]
    jobs = [queued_job(broker, queue=queue, body=body(str(n))) for queue in (QUEUE, "low") for n in range(3)]
    tell(broker, f"failed {NOTE}", 40, f"done {NOTE}", 10)
    other = queued_job(broker, body=body("other", task=SLEEP))
    return dead, jobs, other


def test_stop_it_everywhere_fix_it_and_requeue(broken, broker, inspector, page):
    dead, jobs, other = broken
    page.goto("/admin/django_rtq/queue/")

    page.locator(".rtq-incidents").get_by_role("link", name="Show the task").first.click()
    page.get_by_role("button", name="Pause in all queues").click()  # the second click, and the last

    shows(page.locator(".messagelist"), "note is paused in default, low. Its running jobs continue")
    shows(page.locator(".rtq-actions").first, "paused by ")
    assert claim(broker, 9) == [other.id]
    assert claim(broker, 9, queues=["low"]) == []
    shows(page.locator(".rtq-actions").first, "6 jobs held in default, low")
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0

    page.goto("/admin/django_rtq/queue/")
    shows(page.locator(".rtq-incidents"), "Task note is paused in default, low, and holds 6 jobs.")
    page.locator(".rtq-incidents").get_by_role("link", name="Show the task").last.click()
    page.get_by_role("link", name="Requeue its dead letters …").click()
    page.get_by_role("button", name="Requeue").click()
    shows(page.locator(".messagelist"), "2 dead letters were requeued.")
    page.get_by_role("button", name="Resume in all queues").click()

    shows(page.locator(".messagelist"), "note was resumed in default, low.")
    assert page.get_by_role("button", name="Pause in all queues").count() == 1
    there = {*claim_all(broker), *claim_all(broker, queue="low")}
    assert there == {job.id for job in (*dead, *jobs)}


def test_the_list_of_tasks_has_a_button(broken, inspector, page):
    page.goto("/admin/django_rtq/registeredtask/")
    row = page.locator(".rtq tbody tr").filter(has=page.get_by_role("link", name="note", exact=True))

    row.get_by_role("button", name="Pause").click()

    shows(row, "0 jobs held in default, low")
    assert violations(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0
    row.get_by_role("button", name="Resume").click()
    shows(page.locator(".messagelist"), "was resumed in default, low.")
    assert not [queue for queue in inspector.queues.details() if queue.paused_tasks]
