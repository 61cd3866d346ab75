"""Every page in a real browser: its policy, axe in light and dark, and a narrow screen."""

import pytest

from tests.admin.conftest import every_page, url_of
from tests.browser.content_security_policy import POLICY
from tests.support.jobs import QUEUE

REFRESH_SECONDS = 60  # pages hold still while they are examined
SHOWN = [name for name, page in every_page() if page.method != "POST" and name not in ("job_search", "queue_change")]
STATES = ["queued", "scheduled", "running", "retrying", "dead", "finished"]
LISTS = [f"queue_change?state={state}" for state in STATES]


def visit(page, name, jobs):
    """Open a page by the name of its URL. Returns the response."""
    name, _, query = name.partition("?")
    url = url_of(name, jobs)
    return page.goto(f"{url}?{query}" if query else url)


def violations(page, *, of="html", **options):
    """The findings of axe in a part of a page, one line for each element."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.wait_for_function("() => document.getAnimations().length === 0")  # colours fade into each other
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate("([of, options]) => axe.run(of, options)", [of, {"resultTypes": ["violations"], **options}])
    return [
        f"{violation['id']}: {node['html'][:200]} {[check['message'] for check in node['any']]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def overflow(page):
    """How many pixels a page is wider than the viewport."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("name", [*SHOWN, *LISTS])
def test_a_page_is_accessible_and_obeys_its_policy(name, jobs, page):
    answer = visit(page, name, jobs)
    assert answer.status == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0
    # What the console heard is compared when the page is closed.


def test_an_empty_admin_is_accessible(broker, page):
    for name in ("queue_changelist", "job_changelist", "deadletter_changelist", "worker_changelist"):
        visit(page, name, None)
        assert violations(page) == []


def test_incidents_and_their_buttons_are_accessible(broker, jobs, inspector, page):
    inspector.pause(QUEUE)
    visit(page, "queue_changelist", jobs)
    assert page.locator(".rtq-incidents button").count() == 1
    assert page.locator(".rtq-incidents code").count() > 0
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0


def test_what_breaks_the_policy_is_noticed(jobs, page, console_errors):
    visit(page, "queue_changelist", jobs)
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    page.wait_for_function("() => true")
    assert any("Content Security Policy" in complaint for complaint in console_errors)
    console_errors.clear()


def test_what_is_not_accessible_is_noticed(jobs, page):
    visit(page, "queue_changelist", jobs)
    page.evaluate("document.querySelector('.rtq').append(document.createElement('button'))")
    assert [line for line in violations(page) if line.startswith("button-name")]
