"""A task fails since a deploy: an operator sees which version it was, and what the task did in the weeks before."""

import pytest

from tests.broker.test_task_metrics import tell
from tests.browser.actions import shows
from tests.browser.conftest import NOTE
from tests.browser.test_broken_task import OVERVIEW, clicker
from tests.browser.test_pages import overflow, violations
from tests.support.jobs import QUEUE

REFRESH_SECONDS = 60
OPTIONS = {"VERSION": "2026.11.3"}


@pytest.fixture
def deployed(broker):
    """A task that began to fail two minutes after a deploy, and ran without failures in the month before."""
    keys, seconds = broker.keys.of(QUEUE), int(broker.redis.execute_one(("TIME",))[0])
    minute, hour = seconds // 60, seconds // 3600
    broker.register_queues([QUEUE])
    tell(broker, f"done {NOTE}", 2, f"failed {NOTE}", 98)
    deploys = [(seconds - 20 * 86_400, "2026.10.9"), (seconds - 600, "2026.11.3")]
    days = range(hour // 24 - 30, hour // 24)
    broker.redis.execute(
        [
            *(("HSET", keys.stats_of(minute - back), "failed", 12) for back in range(8)),
            *(("LPUSH", keys.deploys, f"{at * 1000} {version}") for at, version in deploys),
            *(("HSET", keys.task_days + b"%d" % day, NOTE, f"{24 * day + 5} done 100 r12 100") for day in days),
            ("HSET", keys.clock, "tasks_stored", hour),
        ]
    )


def test_the_overview_says_since_which_version_a_task_fails_and_its_page_shows_the_month(deployed, page):
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
    assert violations(page) == []

    click = clicker(page)
    click("link", "Show the task")
    assert click("link", "Last 30 days") == 2
    shows(page.locator(".rtq h2.rtq-choice span"), "Last 30 days")
    done = page.locator(".rtq-strip dd").first.inner_text()
    assert int(done.replace(",", "")) >= 2900
    assert set(page.locator(".rtq-labels text").all_text_contents()) == {"2026.10.9", "2026.11.3"}


@pytest.mark.parametrize("address", [OVERVIEW, f"/admin/django_rtq/registeredtask/{NOTE}/?span=7d"])
def test_both_pages_can_be_read_in_the_dark_and_on_a_phone(deployed, page, address):
    page.goto(address)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == []
        assert overflow(page) <= 0
