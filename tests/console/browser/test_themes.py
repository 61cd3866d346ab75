"""The pages with a theme of the admin installed. Each has a server of its own; what is not installed is left out."""

from importlib.util import find_spec

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.console.browser.actions import shows
from tests.console.browser.admin_server import refresh_every
from tests.console.browser.chromium import window
from tests.console.browser.components import compose
from tests.console.browser.conftest import STILL
from tests.console.browser.settings import THEMES
from tests.console.browser.test_pages import LISTS, OF_TEMPLATES, address_of, overflow, violations, visit
from tests.support.jobs import QUEUE, queued_job
from tests.support.workflows import blocked_flow


@pytest.fixture
def jobs(jobs, broker):
    """With what the pages of workflows show."""
    blocked_flow(broker)
    return jobs


@pytest.fixture(params=THEMES)
def theme(request, admin_servers):
    """An admin server with a third-party theme."""
    if not find_spec(request.param):
        pytest.skip(f"{request.param} is not installed")
    return admin_servers(RTQ_TEST_THEME=request.param, **refresh_every(STILL))


def test_every_template_answers(theme, jobs):
    for name in OF_TEMPLATES.values():
        status, html = theme.get(address_of(name, jobs))
        assert status == 200, name
        assert 'class="rtq"' in html, name
        assert html.count("django_rtq/pages.css") == 1, name


def test_a_page_says_what_it_is_about_and_lives(theme, browser, jobs):
    with window(browser, theme) as page:
        visit(page, LISTS[4], jobs)
        title = page.locator(".rtq h1")
        assert title.inner_text() == f"Queue {QUEUE}"
        assert title.is_visible()
        visit(page, "queue_changelist", jobs)
        shows(page.locator(".rtq-live [role=status]"), "Live")
        assert page.locator(".rtq-figures").first.is_visible()
        assert overflow(page) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_ours_can_be_read(theme, browser, jobs, scheme):
    with window(browser, theme, color_scheme=scheme) as page:
        visit(page, "queue_changelist", jobs)
        compose(page, [address_of(name, jobs) for name in OF_TEMPLATES.values()])
        assert violations(page, of=".rtq", runOnly=["color-contrast"]) == []


def test_an_idle_fleet_does_not_look_busy(theme, browser, broker):
    queued_job(broker, client="bakery")
    queued_job(broker, client="florist")
    broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, 0, "bakery", 1, 1000, "florist", 99, 99_000)]))
    with window(browser, theme, color_scheme="dark") as page:
        page.goto("/admin/django_rtq/client/client/?client=bakery")
        meter = page.locator(".rtq meter").first
        track = meter.evaluate("(meter) => getComputedStyle(meter, '::-webkit-meter-bar').background")
        edge = meter.evaluate(
            "(meter) => { const it = document.createElement('i'); it.style.background = 'var(--rtq-edge)';"
            " meter.after(it); return getComputedStyle(it).background; }"
        )
        assert track == edge
