"""Checks the size limits of functions, modules and Lua files. See CONTRIBUTING.md."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("django_rtq", "testproject", "tests", "benchmarks", ".ci")

FUNCTION_LINES = 40
MODULE_LINES = 350
# Below the header, which is the signature. At 60, scripts were cut into pieces that said nothing by themselves; at 80
# a verb is one file, with a part of its own where it has a second idea.
LUA_LINES = 80


def problems() -> Iterator[str]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield from in_module(path)
        for path in sorted((ROOT / folder).rglob("*.lua")):
            yield from in_lua(path)


def in_module(path: Path) -> Iterator[str]:
    yield from in_file(path, MODULE_LINES)
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{name(path)}:{node.lineno}: {node.name} has {lines} lines, {FUNCTION_LINES} at most"


def in_lua(path: Path) -> Iterator[str]:
    lines = path.read_text().splitlines()
    header = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    if len(lines) - header > LUA_LINES:
        yield f"{name(path)}: {len(lines) - header} lines below its header, {LUA_LINES} at most"


def in_file(path: Path, limit: int) -> Iterator[str]:
    lines = len(path.read_text().splitlines())
    if lines > limit:
        yield f"{name(path)}: {lines} lines, {limit} at most"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


if __name__ == "__main__":
    found = list(problems())
    for problem in found:
        print(problem)
    print(f"sizes: {len(found)} too large" if found else "sizes: all within the limits")
    sys.exit(1 if found else 0)
