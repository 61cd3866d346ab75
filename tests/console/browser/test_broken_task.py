"""A deploy has broken a task: an operator finds its page, stops what waits of it, and sees who did what."""

import pytest

from tests.console.browser.actions import follow, shows
from tests.console.browser.conftest import NOTE, body
from tests.console.lua.test_dead_letters import bury
from tests.console.lua.test_task_metrics import tell
from tests.support.jobs import QUEUE, queued_job

OVERVIEW = "/admin/django_rtq/queue/"


@pytest.fixture
def broken(broker):
    """A task whose runs fail, with jobs that wait in two queues, and another task."""
    for _ in range(3):
        bury(broker, NOTE, kind="shop.errors.OutOfOrder", message="no answer")
    for queue in (QUEUE, "low"):
        for n in range(20):
            queued_job(broker, body=body(f"{queue}{n}"), queue=queue, client="acme")
    queued_job(broker, body=body("kept", task="tests.app.tasks.other"))
    tell(broker, f"done {NOTE}", 2, f"failed {NOTE}", 98, f"r1 {NOTE}", 4, f"r12 {NOTE}", 100, f"w28 {NOTE}", 50)


def clicker(page):
    """Clicks on links and buttons, and counts."""
    clicks = []

    def click(role, name):
        clicks.append(name)
        follow(page.get_by_role(role, name=name).first)
        return len(clicks)

    return click


def test_it_is_found_from_the_overview_and_its_jobs_are_cancelled_in_all_queues(broken, page, readers):
    page.goto(OVERVIEW)
    click = clicker(page)
    click("link", "Show the task")
    shows(page.locator(".rtq"), "OutOfOrder")
    click("link", "Cancel its jobs …")
    shows(page.locator(".rtq"), "Cancel 40 waiting jobs?")
    assert click("button", "Cancel jobs") == 3

    shows(page.locator(".messagelist"), "40 jobs were cancelled.")
    found = readers.tasks.get(NOTE)
    assert (sum(each.waiting for each in found.queues), sum(each.dead for each in found.queues)) == (0, 3)
    assert readers.queues.get(QUEUE).queued == 1


def test_after_the_repair_its_dead_letters_run_again(broken, page, readers):
    page.goto(f"/admin/django_rtq/registeredtask/{NOTE}/")
    click = clicker(page)
    click("link", "Requeue its dead letters …")
    assert click("button", "Requeue") == 2
    shows(page.locator(".messagelist"), "3 dead letters were requeued.")
