"""Draws docs/images/packages.svg from the import contract in pyproject.toml: `make diagram`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/packages.svg"

WIDTH, ROW, BOX = 720, 46, 30
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
    """The layers of the contract, from the top: the modules and packages in each."""
    listed = re.search(r"^layers = (\[.*?^\])", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    assert listed, "pyproject.toml has no layers"
    named = [[name for name in re.findall(r"\w+", layer) if exists(name)] for layer in ast.literal_eval(listed[1])]
    return [names for names in named if names]


def exists(name: str) -> bool:
    """The contract may name modules that are optional."""
    return any((ROOT / "django_rtq" / path).exists() for path in (name, f"{name}.py"))


def label(name: str) -> str:
    """A package is shown with a slash behind its name."""
    return f"{name}/" if (ROOT / "django_rtq" / name).is_dir() else name


def row(names: list[str], top: int) -> str:
    """The boxes of one layer, centred."""
    widths = [9 * len(label(name)) + 28 for name in names]
    left = (WIDTH + 40 - sum(widths) - 16 * (len(names) - 1)) / 2
    boxes = []
    for name, width in zip(names, widths, strict=True):
        boxes.append(f'  <rect class="box" x="{left:g}" y="{top}" width="{width}" height="{BOX}" rx="5"/>')
        boxes.append(f'  <text x="{left + width / 2:g}" y="{top + 20}" text-anchor="middle">{label(name)}</text>')
        left += width + 16
    return "\n".join(boxes)


def draw() -> str:
    """The whole picture."""
    floors = layers()
    height = ROW * len(floors) + 30
    rows = "\n".join(row(names, 24 + ROW * number) for number, names in enumerate(floors))
    described = "; ".join(" and ".join(names) for names in floors)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" \
aria-labelledby="packages-title packages-desc">
  <title id="packages-title">Layers of the package django_rtq</title>
  <desc id="packages-desc">A module imports only modules of layers below its own. From the top: {described}.</desc>
  <style>
{STYLE}
  </style>
  <rect class="page" width="{WIDTH}" height="{height}"/>
  <path class="line" d="M36 30V{height - 34}m-7 -12 7 12 7 -12"/>
  <text class="small" x="20" y="18">imports</text>
{rows}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"wrote {PICTURE.relative_to(ROOT)}")
