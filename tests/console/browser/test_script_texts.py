"""Texts that scripts write into a page are in the browser's language."""

import re

from tests.console.browser.actions import shows
from tests.console.browser.chromium import window
from tests.console.browser.conftest import OFTEN
from tests.console.browser.test_flows import OVERVIEW, status
from tests.support.jobs import queued_job

REFRESH_SECONDS = OFTEN


def test_a_page_says_since_when_it_is_stale_in_the_language_of_the_reader(broker, browser, admin_server):
    queued_job(broker, "first")
    with window(browser, admin_server, locale="pt-BR") as page:
        page.goto(OVERVIEW)
        shows(status(page), "Ao vivo")
        admin_server.stop()
        shows(status(page), re.compile(r"^Sem resposta; dados de \d\d:\d\d:\d\d$"))
        admin_server.start()
        shows(status(page), "Ao vivo")


def test_in_a_language_from_right_to_left_the_time_and_colours_of_a_chart_go_as_its_lines_do(
    jobs, browser, admin_server
):
    with window(browser, admin_server, locale="he") as page:
        page.goto(OVERVIEW)
        assert page.locator("html").get_attribute("dir") == "rtl"
        ticks = page.locator(".rtq-ticks").first.locator("text")
        read = "ticks => ticks.map(tick => [tick.getBoundingClientRect().x, tick.textContent])"
        places, times = map(list, zip(*ticks.evaluate_all(read), strict=True))
        assert len(places) >= 4
        assert places == sorted(places)
        heights, chart = page.locator(".rtq-heights").first, page.locator(".rtq-chart").first
        assert heights.bounding_box()["x"] < chart.bounding_box()["x"]
        assert times == sorted(times) or "00:00" in times
        for entry in page.locator(".rtq-key > span").all():
            colour, word = entry.locator("i").bounding_box(), entry.locator("bdi").bounding_box()
            assert 0 <= word["x"] - (colour["x"] + colour["width"]) < 10
