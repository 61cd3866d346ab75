"""Draws docs/images/packages.svg from the import contract in pyproject.toml: `make diagram`."""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "django_rtq"
PICTURE = ROOT / "docs/images/packages.svg"
# Django or the docs look for these by their places: they lead to what does the work, or are the root.
DOORS = {
    *("admin", "apps", "broker", "extensions", "management", "middleware", "migrations", "models"),
    *("exceptions", "pytest_plugin", "signals", "templatetags"),
}

WIDTH, ROW, BOX = 720, 82, 70
STYLE = """\
    .page { fill: #ffffff }
    .box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.5 }
    .line { stroke: #24292f; stroke-width: 1.5; fill: none }
    text { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 14px; fill: #24292f }
    .small { font-family: system-ui, sans-serif; font-size: 12.5px }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 }
      .box { fill: #161b22; stroke: #9198a1 }
      .line { stroke: #e6edf3 }
      text { fill: #e6edf3 }
    }"""


def layers() -> list[list[str]]:
    """The layers of the contract, from the top: the core and the apps in each."""
    listed = re.search(r"^layers = (\[.*?^\])", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert listed, "pyproject.toml has no layers"
    shown = [re.findall(r"\w+", layer) for layer in ast.literal_eval(listed[1])]
    named = [[name for name in names if name not in DOORS and path_of(name)] for names in shown]
    return [names for names in named if names]


def path_of(name: str) -> Path | None:
    """Where it is documented. The contract may name modules that are optional."""
    found = (path for path in (PACKAGE / name / "__init__.py", PACKAGE / f"{name}.py") if path.exists())
    return next(found, None)


def sentence(name: str) -> str:
    """What it is for: the first line of its docstring."""
    path = path_of(name)
    return str(ast.get_docstring(ast.parse(path.read_text()))).partition("\n")[0].removesuffix(".") if path else ""


def label(name: str) -> str:
    """A package is shown with a slash behind its name."""
    return f"{name}/" if (PACKAGE / name).is_dir() else name


def row(names: list[str], top: int) -> str:
    """The boxes of one layer, as wide as the picture."""
    width = (WIDTH - 60 - 16 * (len(names) - 1)) / len(names)
    boxes = []
    for number, name in enumerate(names):
        left = 60 + number * (width + 16)
        boxes.append(f'  <rect class="box" x="{left:g}" y="{top}" width="{width:g}" height="{BOX}" rx="5"/>')
        boxes.append(f'  <text x="{left + 12:g}" y="{top + 20}">{label(name)}</text>')
        for line, text in enumerate(wrap(sentence(name), int(width / 6.8))):
            boxes.append(f'  <text class="small" x="{left + 12:g}" y="{top + 40 + 17 * line}">{escape(text)}</text>')
    return "\n".join(boxes)


def draw() -> str:
    """The whole picture."""
    floors = layers()
    height = ROW * len(floors) + 30
    rows = "\n".join(row(names, 24 + ROW * number) for number, names in enumerate(floors))
    described = "; ".join(" and ".join(names) for names in floors)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 20} {height}" width="{WIDTH + 20}" height="{height}" \
role="img" aria-labelledby="packages-title packages-desc">
  <title id="packages-title">Layers of the package django_rtq</title>
  <desc id="packages-desc">A module imports only modules of layers below its own. From the top: {described}.</desc>
  <style>
{STYLE}
  </style>
  <rect class="page" width="{WIDTH + 20}" height="{height}"/>
  <path class="line" d="M36 30V{height - 34}m-7 -12 7 12 7 -12"/>
  <text class="small" x="20" y="18">imports</text>
{rows}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"wrote {PICTURE.relative_to(ROOT)}")
