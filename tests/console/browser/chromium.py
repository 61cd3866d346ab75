"""Chromium by Playwright. Without one the tests are skipped, unless RTQ_BROWSER=required: then they fail."""

import os
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from testproject.chromium import NoChromium, find_chromium, launched

PACKAGES = ("playwright", "axe_playwright_python")
TIMEOUT_MS = 30_000  # a machine under load may be slow; a test that passes does not wait for it


def missing(what):
    """Skip a test, or fail if browsers are required."""
    if os.environ.get("RTQ_BROWSER") == "required":
        pytest.fail(f"RTQ_BROWSER=required, but {what}")
    pytest.skip(what)


@contextmanager
def chromium():
    if not all(map(find_spec, PACKAGES)):
        missing("Playwright or axe is not installed: pip install 'django-rtq[browser]'")
    try:
        path = find_chromium()
    except NoChromium as problem:
        missing(str(problem))
    with launched(path) as browser:
        yield browser


def new_context(browser, admin_server, **options):
    """A browser context, logged in to the admin."""
    context = browser.new_context(base_url=admin_server.url, **{"reduced_motion": "reduce", **options})
    context.set_default_timeout(TIMEOUT_MS)
    log_in(context, admin_server)
    return context


def log_in(context, admin_server):
    """Forget whoever is logged in, and what the admin has said."""
    context.clear_cookies()
    context.add_cookies([{"name": "sessionid", "value": admin_server.cookie, "url": admin_server.url}])


@contextmanager
def window(browser, admin_server, **options):
    """A page in a new browser context, logged in to the admin."""
    context = new_context(browser, admin_server, **options)
    yield context.new_page()
    context.close()
