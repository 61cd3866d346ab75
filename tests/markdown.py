"""Reads the documentation: sections, tables and examples of Markdown pages."""

import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def read(name):
    """The text of a page."""
    return (ROOT / name).read_text()


def section(text, heading):
    """What stands under a heading, up to the next one of its kind."""
    level = heading.split(" ", 1)[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", text, re.M | re.S)
    assert found, f"there is no {heading!r}"
    return found[1]


def blocks(text, language="python"):
    """The examples: (the file that the first line names, or "", and the code) each."""
    found = []
    for code in re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S):
        named = re.match(r"# ([\w/]+\.py)\b", code)
        found.append((named[1] if named else "", code))
    return found


def rows(text):
    """The cells of every line of every table, its head left out."""
    lines = [
        line for line, after in pairwise([*text.splitlines(), ""]) if line.startswith("| ") and after[:4] != "|---"
    ]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def cells(text):
    """The second cells of tables, by each name in the first ones."""
    return {name: row[1] for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])}


def anchors(text):
    """What a link may name behind its #."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
