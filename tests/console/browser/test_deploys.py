"""A task fails since a deploy: an operator sees which version it was, and what the task did before."""

import pytest

from tests.console.browser.actions import shows
from tests.console.browser.components import OVERVIEW, fail_since_a_deploy
from tests.console.browser.conftest import NOTE
from tests.console.browser.test_broken_task import clicker
from tests.console.browser.test_pages import assert_colours_are_readable, overflow, violations
from tests.console.browser.test_schedules import OPTIONS  # noqa: F401


@pytest.fixture
def deployed(broker):
    """A task that began to fail two minutes after a deploy, and ran without failures in the two days before."""
    fail_since_a_deploy(broker)


def test_the_overview_says_since_which_version_a_task_fails_and_its_page_shows_two_days(deployed, page):
    page.goto(OVERVIEW)
    shows(page.locator(".rtq"), "It began after the start of version 2026.11.3.")
    assert page.locator(".rtq-labels text").all_text_contents() == ["2026.11.3"] * 2
    chart = page.get_by_role("slider").first
    chart.focus()
    for _ in range(20):
        if "Version 2026.11.3 started" in page.locator(".rtq-readout").first.inner_text():
            break
        page.keyboard.press("ArrowLeft")
    assert "Version 2026.11.3 started" in chart.get_attribute("aria-valuetext")

    click = clicker(page)
    click("link", "Show the task")
    shows(page.locator(".rtq"), "Last 48 hours")
    done = page.locator(".rtq-strip dd").first.inner_text()
    assert int(done.replace(",", "")) >= 4000
    assert set(page.locator(".rtq-labels text").all_text_contents()) == {"2026.10.9", "2026.11.3"}


def test_both_pages_can_be_read_in_the_dark_and_on_a_phone(deployed, page):
    for address in (f"/admin/django_rtq/registeredtask/{NOTE}/", OVERVIEW):
        page.goto(address)
        assert violations(page) == []
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert overflow(page) <= 0
    assert_colours_are_readable(page, of=".rtq-labels")
