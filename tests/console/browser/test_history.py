"""An operator looks at the throughput of 7 days, and reads values off the charts."""

import pytest

from tests.console.browser.actions import follow
from tests.console.browser.chromium import window
from tests.console.browser.components import OVERVIEW, count_two_weeks
from tests.console.browser.conftest import OFTEN
from tests.console.browser.test_pages import overflow, violations

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
