"""Every page in a real browser: its policy, axe in light and dark, and a narrow screen."""

import pytest

from tests.admin.conftest import every_page, url_of
from tests.browser.actions import follow
from tests.browser.content_security_policy import POLICY
from tests.support.jobs import QUEUE

REFRESH_SECONDS = 60  # pages hold still while they are examined
SHOWN = [name for name, page in every_page() if page.method != "POST" and name != "queue_change"]
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


def covered(page):
    """The buttons and fields whose middle shows something else, which a click would hit."""
    return page.evaluate(
        """() => [...document.querySelectorAll("button, .rtq-button, .object-tools a, input, select")]
          .filter((each) => each.checkVisibility({ visibilityProperty: true }))
          .filter((each) => {
            each.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
            const box = each.getBoundingClientRect();
            const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return !hit || !(each.contains(hit) || hit.contains(each) && hit.matches("label, button"));
          })
          .map((each) => each.outerHTML.slice(0, 200))"""
    )


def cut_off(page):
    """The buttons in tables that are partly outside of what the table shows."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".rtq-scroll button, .rtq-scroll a.rtq-button")]
          .map((each) => [each, each.getBoundingClientRect(), each.closest(".rtq-scroll").getBoundingClientRect()])
          .filter(([each, box, table]) => box.right > table.right + 1)
          .map(([each]) => each.outerHTML.slice(0, 200))"""
    )


def assert_accessible_everywhere(page):
    """axe finds nothing in light and dark, on a wide screen and on a phone, which does not scroll sideways.

    No button is covered, or cut off on the wide screen.
    """
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        options = {} if scheme == "light" else {"runOnly": ["color-contrast"]}  # only colours differ
        assert violations(page, **options) == [], (width, scheme)
        assert overflow(page) <= 0
        assert covered(page) == [], (width, scheme)
        assert width < 1440 or cut_off(page) == []


@pytest.mark.parametrize("name", [*SHOWN, *LISTS])
def test_a_page_is_accessible_and_obeys_its_policy(name, jobs, page):
    answer = visit(page, name, jobs)
    assert answer.status == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert_accessible_everywhere(page)
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
    assert_accessible_everywhere(page)


@pytest.fixture
def acted_on(jobs, page):
    """Jobs that somebody has acted on: the last actions and the log have entries."""
    visit(page, "queue_change?state=dead", jobs)
    page.locator("[data-rtq-all]").check()
    follow(page.get_by_role("button", name="Requeue selected"))
    visit(page, "registeredtask_enqueue", jobs)
    page.locator("[name=args]").fill('["bakery", 1]')
    follow(page.get_by_role("button", name="Enqueue", exact=True))
    for name, button in (("registeredtask_change", "Pause in all queues"), ("client_change", "Pause in all queues")):
        visit(page, name, jobs)
        follow(page.get_by_role("button", name=button))
    return jobs


@pytest.mark.parametrize("name", ["log_changelist", "queue_change", "registeredtask_change", "client_change"])
def test_what_was_done_is_accessible(name, acted_on, page):
    visit(page, name, acted_on)
    decorations = "(links) => links.map((link) => getComputedStyle(link).textDecorationLine)"
    assert set(page.locator("[data-rtq-live=log] tbody a").evaluate_all(decorations)) == {"underline"}
    assert_accessible_everywhere(page)


def test_what_the_search_found_is_accessible(jobs, page):
    page.goto("/admin/django_rtq/job/search/?q=state:dead")
    assert page.get_by_text("To act on all of them:").locator("a").count() == 1  # axe wants more text than links
    assert_accessible_everywhere(page)


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
