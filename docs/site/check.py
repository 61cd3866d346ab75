"""Checks the built site: `python docs/site/check.py FOLDER`. Prints what is wrong and exits with 1.

Every link leads to a file and an anchor that exist, every page is reachable from the first one, nothing is loaded from
another host, and no page is larger than 100 kB.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

MAX_BYTES = 100_000
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset", "object": "data"}


class Page(HTMLParser):
    """One page: where it links to, what it loads, and the anchors in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values.get("id", ""), values.get("name", "")}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADS and values.get(LOADS[tag]):
            self.loads.append(values[LOADS[tag]])


def is_remote(url: str) -> bool:
    return "://" in url or url.startswith(("//", "mailto:", "data:"))


def problems(folder: Path) -> list[str]:
    """What is wrong with the site in a folder."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    wrong = []
    leads_to: dict[Path, set[Path]] = {}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        leads_to[path] = set()
        wrong += [f"{name}: loads {url} from another host" for url in page.loads if is_remote(url)]
        if path.stat().st_size > MAX_BYTES:
            wrong.append(f"{name}: {path.stat().st_size:,} bytes, more than {MAX_BYTES:,}")
        for url in [*page.links, *page.loads]:
            if is_remote(url):
                continue
            file, anchor = urldefrag(unquote(url))
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            if not target.is_file():
                wrong.append(f"{name}: no file {url}")
            elif target in pages and anchor not in pages[target].anchors:
                wrong.append(f"{name}: no anchor {url}")
            leads_to[path].add(target)
    for sheet in sorted(folder.rglob("*.css")):
        for url in re.findall(r"url\([\"']?((?:https?:)?//[^)\"']+)", sheet.read_text()):
            wrong.append(f"{sheet.name}: loads {url} from another host")
    return wrong + [f"{path.name}: no page leads to it" for path in unreachable(leads_to, folder)]


def unreachable(leads_to: dict[Path, set[Path]], folder: Path) -> set[Path]:
    """The pages that cannot be reached from the first one."""
    ahead = [(folder / "index.html").resolve()]
    reached = set(ahead)
    while ahead:
        ahead_of_page = leads_to.get(ahead.pop(), set()) - reached
        reached |= ahead_of_page
        ahead += ahead_of_page
    return leads_to.keys() - reached


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "site: links, anchors and sizes are right")
    sys.exit(bool(wrong))
