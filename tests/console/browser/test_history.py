"""An operator reads throughput off the charts of 7 days, and sees since which version a task fails."""

import pytest

from tests.console.browser.actions import follow, shows
from tests.console.browser.chromium import window
from tests.console.browser.components import OVERVIEW, count_two_weeks, fail_since_a_deploy
from tests.console.browser.conftest import NOTE, OFTEN
from tests.console.browser.test_broken_task import clicker
from tests.console.browser.test_pages import assert_colours_are_readable, overflow, violations
from tests.console.browser.test_schedules import OPTIONS  # noqa: F401

REFRESH_SECONDS = OFTEN


@pytest.fixture
def weeks(broker):
    """Counters of two weeks, in which every hour had 120 jobs, and one hour of the last week 1,200."""
    count_two_weeks(broker)


def readouts(page):
    """What the charts tell under the cursor."""
    return page.locator(".rtq-readout").all_inner_texts()


def test_the_throughput_of_seven_days_is_one_click_away(weeks, page):
    page.goto(OVERVIEW)
    follow(page.get_by_role("link", name="Last 7 days"))  # the only click

    chart = page.locator(".rtq-chart").first
    chart.wait_for()
    assert "span=7d" in page.url
    assert page.locator(".rtq-heights bdi").first.inner_text() == "20"  # an hour of 1,200, with one of 120
    assert page.locator(".rtq-ticks").first.locator("text").count() >= 6
    assert "a week before" in page.locator(".rtq-key").first.inner_text()
    page.set_viewport_size({"width": 390, "height": 800})
    assert overflow(page) <= 0


def test_a_mouse_shows_the_values_of_all_charts_at_that_time(weeks, page):
    page.goto(f"{OVERVIEW}?span=30d")
    page.locator(".rtq-chart").first.hover()

    runs, times = readouts(page)
    assert "succeeded 2 \N{MIDDLE DOT} failed 0.10 \N{MIDDLE DOT} crashed 0" in runs or "succeeded" in runs
    assert times.split(" \N{MIDDLE DOT} ")[0] == runs.split(" \N{MIDDLE DOT} ")[0]
    assert page.locator(".rtq-chart.rtq-is-pointed").count() == 2


def test_keys_move_along_the_charts(weeks, page):
    page.goto(f"{OVERVIEW}?span=7d")
    chart = page.get_by_role("slider").first
    chart.focus()
    newest = readouts(page)
    page.keyboard.press("ArrowLeft")
    before = readouts(page)
    page.keyboard.press("Home")
    oldest = readouts(page)

    assert len({newest[0], before[0], oldest[0]}) == 3
    assert chart.get_attribute("aria-valuetext") == oldest[0]
    page.keyboard.press("ArrowLeft")
    assert readouts(page) == oldest
    page.keyboard.press("End")
    assert readouts(page) == newest
    assert violations(page) == []


def test_without_a_script_the_values_are_in_titles_and_in_a_table(weeks, browser, admin_server):
    with window(browser, admin_server, java_script_enabled=False) as page:
        page.goto(f"{OVERVIEW}?span=7d")
        assert page.locator(".rtq-chart rect").first.text_content().count("a week before") == 1
        assert not page.locator(".rtq-readout").first.is_visible()
        page.get_by_text("Data table").first.click()
        assert page.locator("figure table tbody tr").first.is_visible()


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
