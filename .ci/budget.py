"""Compare the lines of each part with .ci/budget.toml: python .ci/budget.py [--write]

A line counts for the longest path that the file names. Who needs more lines raises the number in the same commit;
--write sets all numbers to what there is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / ".ci" / "budget.toml"
SUFFIXES = {"python": ".py", "lua": ".lua", "tests": ".py"}


def count(kind: str, paths: list[str]) -> Counter[str]:
    """The lines of each of these paths, without those of longer ones."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", *paths], capture_output=True, text=True, check=True)
    lines: Counter[str] = Counter(dict.fromkeys(paths, 0))
    for name in listed.stdout.splitlines():
        if name.endswith(SUFFIXES[kind]) and (ROOT / name).exists():
            part = max((path for path in paths if name.startswith(path + "/") or name == path), key=len)
            lines[part] += len((ROOT / name).read_text().splitlines())
    return lines


def main() -> int:
    """Returns the exit code."""
    sections: dict[str, dict[str, int]] = {}
    for kind, path, lines in re.findall(r'^(?:\[(\w+)\]|"(.+)" = (\d+))$', BUDGET.read_text(), re.M):
        if kind:
            sections[kind] = {}
        else:
            sections[list(sections)[-1]][path] = int(lines)
    counts = {kind: count(kind, list(parts)) for kind, parts in sections.items()}
    if "--write" in sys.argv:
        written = ["".join(f'"{path}" = {lines}\n' for path, lines in counts[kind].items()) for kind in counts]
        BUDGET.write_text("\n".join(f"[{kind}]\n{rows}" for kind, rows in zip(counts, written, strict=True)))
        return 0
    over = [(kind, path) for kind in counts for path in counts[kind] if counts[kind][path] > sections[kind][path]]
    for kind, path in over:
        most = f"{sections[kind][path]} in {BUDGET.name}: remove some, or raise that"
        print(f"{path} has {counts[kind][path]} lines of {kind}, and {most}")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
