"""The Chromium of this machine, driven by Playwright: for the tests of the admin, and for the pictures of the docs."""

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
    """There is no Chromium on this machine. The message says how to get one."""


def find_chromium() -> str:
    """Its path. Raises NoChromium."""
    path = os.environ.get("RTQ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise NoChromium("there is no Chromium on PATH: apt-get install chromium, or say where with RTQ_CHROMIUM=…")
    return path


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A browser without a window. Its event loop runs in this thread for as long as it lives."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=ARGUMENTS) as browser:
        yield browser
