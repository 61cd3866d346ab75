"""The page of schedules: those of the code and the settings, and those that people make."""

from tests.console.browser.actions import follow, shows
from tests.console.browser.test_pages import assert_fits_everywhere, covered, violations

LIST = "/admin/django_rtq/schedule/"
OPTIONS = {
    "VERSION": "2026.11.3",  # for test_deploys, which has the same server
    "SCHEDULES": {
        "nightly": {"task": "testproject.shop.tasks.build_report", "cron": "30 2 * * *", "args": ["bakery", 3]},
        "beat": {"task": "testproject.shop.tasks.send_order_mail", "every": 20, "args": ["bakery", 1]},
    },
}


def test_why_did_it_not_run_last_night(broker, page):
    page.goto(LIST)
    nightly = page.locator(".rtq-cards tr").filter(has_text="nightly")
    shows(nightly, "No scheduler is running for queue reports.")

    follow(nightly.get_by_role("link", name="build_report"))

    shows(page.locator("[data-rtq-live=schedules]"), "No scheduler is running for queue reports.")
    assert violations(page) == []
    assert_fits_everywhere(page)
    follow(page.locator("[data-rtq-live=schedules]").get_by_role("link", name="nightly"))
    assert page.locator(".rtq-cards tbody tr").count() == 1


def test_the_list_is_accessible_and_each_button_can_be_clicked(broker, page):
    page.goto(LIST)
    assert page.locator(".rtq-cards tbody tr").count() == 2
    assert violations(page) == []
    assert_fits_everywhere(page)
    for width in (1440, 1280, 1024, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert covered(page) == [], width
