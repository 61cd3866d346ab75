"""The pages with a theme of the admin installed. Each has a server of its own; what is not installed is left out."""

from importlib.util import find_spec

import pytest

from tests.admin.conftest import url_of
from tests.browser.admin_server import Office, refresh_every
from tests.browser.chromium import window
from tests.browser.settings import THEMES
from tests.browser.test_pages import LISTS, SHOWN, overflow, violations, visit
from tests.support.jobs import QUEUE


@pytest.fixture(scope="module", params=THEMES)
def theme(request, redis_server, tmp_path_factory):
    """An admin server with a third-party theme."""
    if not find_spec(request.param):
        pytest.skip(f"{request.param} is not installed")
    environment = {"RTQ_TEST_THEME": request.param, **refresh_every(60)}
    office = Office(tmp_path_factory.mktemp(request.param), redis_server.url, **environment)
    yield office.start()
    office.stop()


def test_every_page_answers(theme, jobs):
    for name in SHOWN:
        status, html = theme.get(url_of(name, jobs))
        assert status == 200, name
        assert 'class="rtq"' in html, name
        assert html.count("django_rtq/pages.css") == 1, name


def test_a_page_says_what_it_is_about(theme, browser, jobs):
    with window(browser, theme) as page:
        visit(page, LISTS[4], jobs)
        title = page.locator(".rtq h1")
        assert title.inner_text() == f"Queue {QUEUE}"
        assert title.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_ours_can_be_read(theme, browser, jobs, scheme):
    with window(browser, theme, color_scheme=scheme) as page:
        for name in ("queue_changelist", LISTS[4], "job_change"):
            visit(page, name, jobs)
            assert violations(page, of=".rtq", runOnly=["color-contrast"]) == [], name


def test_the_pages_live(theme, browser, jobs):
    from playwright.sync_api import expect

    with window(browser, theme) as page:
        visit(page, "queue_changelist", jobs)
        expect(page.locator(".rtq-live [role=status]")).to_contain_text("Live")
        assert page.locator(".rtq table").first.is_visible()
        assert overflow(page) <= 0
