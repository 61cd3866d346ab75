"""Starts the installed Chromium with Playwright, for the browser tests and the screenshots in the docs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = """
    --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
""".split()


class NoChromium(RuntimeError):
    """Chromium is not installed. The message says how to install it."""


def find_chromium() -> str:
    """The path of Chromium. Raises NoChromium."""
    path = os.environ.get("RTQ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise NoChromium("found no Chromium on PATH: apt-get install chromium, or set RTQ_CHROMIUM to its path")
    return path


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A headless browser. Its event loop runs in this thread until the block ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=ARGUMENTS) as browser:
        yield browser
