"""What scripts write into a page is in the language of the browser too."""

import re

import pytest

from tests.browser.chromium import window
from tests.browser.test_flows import OVERVIEW, shows, status
from tests.seeds import queued_job

REFRESH_SECONDS = 0.2


@pytest.mark.parametrize(
    ("locale", "live", "stale"),
    [
        ("zh-CN", "实时", r"^无响应.数据停留在 \d?\d:\d\d:\d\d$"),
        ("pt-BR", "Ao vivo", r"^Sem resposta; desatualizado desde \d\d:\d\d:\d\d$"),
    ],
)
def test_a_page_says_since_when_it_is_stale_in_the_language_of_the_reader(locale, live, stale, broker, browser, office):
    queued_job(broker, "first")
    with window(browser, office, locale=locale) as page:
        page.goto(OVERVIEW)
        shows(status(page), live)
        office.stop()
        shows(status(page), re.compile(stale))
        office.start()
        shows(status(page), live)
