"""Chromium by Playwright. Without one the tests are skipped, unless RTQ_BROWSER=required: then they fail."""

import os
import shutil
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

PACKAGES = ("playwright", "axe_playwright_python")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = """
    --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
""".split()
PATIENCE_MS = 30_000  # a machine under load may be slow; a test that passes does not wait for it


def missing(what):
    """Leave a test out, or fail where browsers are required."""
    if os.environ.get("RTQ_BROWSER") == "required":
        pytest.fail(f"RTQ_BROWSER=required, but {what}")
    pytest.skip(what)


@contextmanager
def chromium():
    """A browser without a window. Its event loop runs in this thread for as long as it lives."""
    if not all(map(find_spec, PACKAGES)):
        missing("Playwright or axe is not installed: pip install 'django-rtq[browser]'")
    path = os.environ.get("RTQ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("there is no Chromium on PATH: apt-get install chromium, or say where with RTQ_CHROMIUM=…")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def window(browser, office, **options):
    """A page of a fresh window, signed in at the office."""
    context = browser.new_context(base_url=office.url, **{"reduced_motion": "reduce", **options})
    context.set_default_timeout(PATIENCE_MS)
    context.add_cookies([{"name": "sessionid", "value": office.cookie, "url": office.url}])
    yield context.new_page()
    context.close()
