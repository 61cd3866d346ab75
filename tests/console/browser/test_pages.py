"""Every page in a real browser: its policy, its structure by axe, and a narrow screen. All colours at once."""

from pathlib import Path

import pytest

import django_rtq
from django_rtq.core.broker.worker_broker import worker_info_commands
from tests.console.admin.conftest import every_page, url_of
from tests.console.browser.actions import follow, shows
from tests.console.browser.components import (
    compose,
    count_two_weeks,
    fail_since_a_deploy,
    log_lines,
    more_addresses,
    unshown_classes,
)
from tests.console.browser.content_security_policy import POLICY
from tests.support.jobs import QUEUE, asked_job, let_lapse, settlement
from tests.support.workflows import FLOW, begun_flow, blocked_flow, claim_members, shown_flows

SHOWN = [name for name, page in every_page() if page.method != "POST" and name != "queue_change"]
STATES = ["queued", "scheduled", "running", "retrying", "dead", "finished"]
LISTS = [f"queue_change?state={state}" for state in STATES]


# A page for each template.
OF_TEMPLATES = {
    "overview": "queue_changelist",
    "queue": "queue_change?state=dead",
    "search": "job_search",
    "confirm": "queue_forget",
    "job": "job_change",
    "list": "worker_changelist",
    "enqueue": "registeredtask_enqueue",
    "task": "registeredtask_change",
    "workflow": "workflow_change",
}
NO_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
# Components whose colours are looked at where they appear: test_deploys.
SEEN_BY_STORIES = {"rtq-events", "rtq-labels", "rtq-mark", "rtq-target"}
WITHOUT_TEXT = {"rtq-is-pointed"}


def address_of(name, jobs):
    """The address of a page by the name of its URL."""
    name, _, query = name.partition("?")
    url = url_of(name, jobs)
    return f"{url}?{query}" if query else url


def visit(page, name, jobs):
    """Open a page by the name of its URL. Returns the response."""
    return page.goto(address_of(name, jobs))


def violations(page, *, of="html", **options):
    """The findings of axe in a part of a page, one line for each element. About contrast only where it is asked for: to
    look at all colours takes longest, and test_all_components_can_be_read does it."""
    from axe_playwright_python.base import AXE_SCRIPT

    page.wait_for_function("() => document.getAnimations().length === 0", polling=50)  # colours fade into each other
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(
        "([of, options]) => axe.run(of, options)", [of, {"resultTypes": ["violations"], **(options or NO_CONTRAST)}]
    )
    return [
        f"{violation['id']}: {node['html'][:200]} {[check['message'] for check in node['any']]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def overflow(page):
    """How many pixels a page is wider than the viewport."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def overflow_of_tables(page):
    """How many pixels the widest table is wider than what shows of it."""
    tables = "[...document.querySelectorAll('.rtq-scroll:has(table)')]"
    return page.evaluate(f"Math.max(0, ...{tables}.map((one) => one.scrollWidth - one.clientWidth))")


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
          .filter((each) => each.checkVisibility({ visibilityProperty: true }))
          .map((each) => [each, each.getBoundingClientRect(), each.closest(".rtq-scroll").getBoundingClientRect()])
          .filter(([each, box, table]) => box.right > table.right + 1)
          .map(([each]) => each.outerHTML.slice(0, 200))"""
    )


def assert_fits_everywhere(page):
    """On a wide screen and on a phone, nothing is covered, and the page does not scroll sideways. On the wide one no
    button is cut off, and on a phone no table scrolls sideways either."""
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert overflow(page) <= 0, width
        assert covered(page) == [], width
        assert cut_off(page) == [] if width == 1440 else overflow_of_tables(page) <= 0


def assert_colours_are_readable(page, of="html"):
    """The contrast is sufficient in light and dark, on a wide screen and on a phone."""
    for width, scheme in ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        assert violations(page, of=of, runOnly=["color-contrast"]) == [], (width, scheme)


@pytest.mark.parametrize("model", sorted({name.partition("_")[0] for name in SHOWN}))
def test_each_page_fits_and_obeys_its_policy(model, broker, jobs, page, console_errors):
    if model == "workflow":
        blocked_flow(broker)
    for name in [name for name in (*SHOWN, *LISTS) if name.startswith(f"{model}_")]:
        answer = visit(page, name, jobs)
        assert answer.status == 200, name
        assert answer.headers["content-security-policy"] == POLICY, name
        assert violations(page) == [], name
        assert_fits_everywhere(page)
        assert console_errors == [], name


def test_each_template_has_its_page():
    folder = Path(django_rtq.__file__).parent / "templates" / "admin" / "django_rtq"
    templates = {path.stem for path in folder.glob("[a-z]*.html")} - {"base", "refresh", "problem", "schedules"}
    assert set(OF_TEMPLATES) == templates  # problems and schedules have modules of their own
    assert set(OF_TEMPLATES.values()) <= {*SHOWN, *LISTS}


@pytest.fixture
def acted_on(jobs, page):
    """Jobs that somebody has acted on: a queue has more jobs, a task and a client are paused."""
    visit(page, "queue_change?state=dead", jobs)
    page.locator(f"input[value='{jobs.worst.id}']").check()
    follow(page.get_by_role("button", name="Requeue selected"))
    visit(page, "registeredtask_enqueue", jobs)
    page.locator("[name=args]").fill('["bakery", 1]')
    follow(page.get_by_role("button", name="Enqueue", exact=True))
    for name, button in (("registeredtask_change", "Pause in all queues"), ("client_change", "Pause in all queues")):
        visit(page, name, jobs)
        follow(page.get_by_role("button", name=button))
    return jobs


def test_all_components_can_be_read(broker, rtq, acted_on, page):
    """On one page, in each colour scheme. Before that, pages after actions fit and are accessible."""
    line = b'{"error_class":"builtins.ValueError","error":"it broke"}\n'
    broker.redis.execute_one(("HSET", broker.keys.of(QUEUE).errors, acted_on.dead.id, line))
    rtq.queues[QUEUE].pause()
    for name in ("queue_change", "registeredtask_change", "client_change"):
        visit(page, name, acted_on)
        assert violations(page) == []
        assert_fits_everywhere(page)
    visit(page, "queue_changelist", acted_on)
    assert page.locator(".rtq-incidents button").count() == 1
    assert page.locator(".rtq-incidents code").count() > 0
    assert violations(page) == []
    assert_fits_everywhere(page)
    acted_on.asked = asked_job(broker, "asked", queue="other", worker="w2")
    let_lapse(broker, "w1", queue="other")  # its worker is lost
    broker.sign_on(["other"], "w3")
    quiet = {"supervisor_name": "s3", "host": "here", "pid": 7, "queues": "other", "quiet": "1"}
    broker.redis.execute(list(worker_info_commands(broker.keys, {"w3": quiet})))
    log_lines(broker, acted_on.finished)
    count_two_weeks(broker)
    fail_since_a_deploy(broker)
    blocked_flow(broker)
    flows = shown_flows(broker)
    visit(page, "queue_changelist", acted_on)
    compose(page, [*(address_of(name, acted_on) for name in (*SHOWN, *LISTS)), *more_addresses(acted_on, flows)])
    assert unshown_classes(page) <= SEEN_BY_STORIES | WITHOUT_TEXT
    assert_colours_are_readable(page)


def test_an_empty_admin_is_accessible(broker, page):
    for name in ("queue_changelist", "job_changelist", "deadletter_changelist", "worker_changelist"):
        visit(page, name, None)
        assert violations(page) == []


def test_tabs_stand_where_they_stood(jobs, page):
    tops = []
    for name in ("queue_changelist", "schedule_changelist"):
        visit(page, name, jobs)
        tops.append(page.locator(".rtq-navigation").first.bounding_box()["y"])
    assert tops[0] == tops[1]


def test_what_the_search_found_is_accessible(jobs, page):
    page.goto("/admin/django_rtq/job/search/?q=state:dead")
    assert page.get_by_text("To act on all of them:").locator("a").count() == 1  # axe wants more text than links
    assert violations(page) == []
    assert_fits_everywhere(page)


def test_a_workflow_and_its_jobs_are_accessible_and_lead_to_each_other(broker, jobs, page):
    steps = [{"queue": "flows", "size": 2, "next": "1"}, *({"queue": "flows"} for _ in range(3))]
    for number in (1, 2, 3):
        steps[number] |= {"after": f"{number - 1}"} | ({"next": f"{number + 1}"} if number < 3 else {})
    begun_flow(broker, *steps)
    first, second = claim_members(broker, queue="flows")
    for verb, member in (("ack", first), ("bury", second)):
        broker.settle("w1", "flows", settlement(verb, member))
    for address in (f"/admin/django_rtq/workflow/{FLOW}/", f"/admin/django_rtq/job/{second.id}/"):
        for direction in ("ltr", "rtl"):
            page.goto(address)
            page.evaluate("(direction) => document.documentElement.setAttribute('dir', direction)", direction)
            assert page.get_by_text("1 of 2 jobs of step t are dead").count() == 1
            assert violations(page) == [], (address, direction)
            assert_fits_everywhere(page)
    follow(page.get_by_role("link", name="flow", exact=True))
    shows(page.get_by_role("region", name="Graph"), "1 of 2")  # of a phone
    page.locator("svg a").first.focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.get_by_label("Search jobs").input_value() == f"state:dead task:=t workflow:{FLOW}"


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
