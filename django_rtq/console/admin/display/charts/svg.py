"""Draws lines and areas as SVG. Colours and patterns are CSS classes.

A chart is drawn without its axes into a picture that is stretched to the width of the page. Texts would be stretched,
too, so the axes stand beside it: see time_chart.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

STEP_WIDTH, HEIGHT = 10, 200  # of a chart, in the units of its picture


class Line(NamedTuple):
    """One line of a chart."""

    title: str
    css: str  # the CSS class
    values: Sequence[float | None]  # None: no value


class Band(NamedTuple):
    """One area of a chart. Areas are stacked, the first at the bottom."""

    title: str
    css: str  # the CSS class
    values: Sequence[float]


class Mark(NamedTuple):
    """A moment that is marked."""

    step: float  # where it is, in steps
    title: str


def draw(
    label: str, top: float, parts: Sequence[Band | Line], *, tips: Sequence[str], marks: Iterable[Mark] = ()
) -> SafeString:
    """A chart of stacked areas, lines, and marked moments. `top` is the value at the upper edge; the rest is cut off.

    `tips` are the texts that a mouse shows, one for each step.
    """
    width = STEP_WIDTH * max(1, len(tips))
    grid = format_html_join(
        "", '<path class="rtq-grid" d="M0 {}H{}"/>', ((round(HEIGHT * part / 4), width) for part in range(5))
    )
    bands = [part for part in parts if isinstance(part, Band)]
    lines = [part for part in parts if isinstance(part, Line)]
    drawn: list[SafeString] = [
        grid,
        *_areas(bands, top),
        *(format_html('<path class="{}" d="{}"/>', line.css, _line_path(line.values, top)) for line in lines),
        *(_mark(mark) for mark in marks),
        format_html('<path class="rtq-cursor" d="M0 0V{}"/>', HEIGHT),
        *(
            SafeString(f'<rect x="{x}" width="{STEP_WIDTH}" height="{HEIGHT}"><title>{escape(tip)}</title></rect>')
            for x, tip in zip(range(0, width, STEP_WIDTH), tips, strict=False)
        ),
    ]
    return format_html(
        '<svg class="rtq-chart" data-rtq-steps="{}" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="none">{}</svg>',
        len(tips),
        width,
        HEIGHT,
        label,
        SafeString("".join(drawn)),  # each of them is safe
    )


def _areas(bands: Sequence[Band], top: float) -> Iterable[SafeString]:
    """The areas, the highest first: each is drawn over the lower part of the one before."""
    sums: list[float] = []
    paths = []
    for band in bands:
        sums = [a + b for a, b in zip(sums, band.values, strict=True)] if sums else list(band.values)
        paths.append(format_html('<path class="{}" d="{}"/>', band.css, _area_path(sums, top)))
    return reversed(paths)


def _area_path(values: Sequence[float], top: float) -> str:
    """Steps from value to value, down to the axis."""
    path, last = f"M0 {HEIGHT}", HEIGHT
    for index, value in enumerate(values):
        y = _y(value, top)
        if y != last:
            path += f"H{index * STEP_WIDTH}V{y}"
        last = y
    return f"{path}H{len(values) * STEP_WIDTH}V{HEIGHT}Z"


def _line_path(values: Sequence[float | None], top: float) -> str:
    """Lines between the middles of the steps, gaps without a value, and a single value as wide as a step."""
    path, is_drawing = "", False
    for index, value in enumerate(values):
        if value is not None:
            path += f"{'L' if is_drawing else 'M'}{index * STEP_WIDTH + STEP_WIDTH // 2} {_y(value, top)}"
            if not is_drawing and (index + 1 == len(values) or values[index + 1] is None):
                path += f"m{-STEP_WIDTH // 2} 0h{STEP_WIDTH}"
        is_drawing = value is not None
    return path


def _mark(mark: Mark) -> SafeString:
    x = round(mark.step * STEP_WIDTH)
    return format_html('<path class="rtq-mark" d="M{} 0V{}"><title>{}</title></path>', x, HEIGHT, mark.title)


def _y(value: float, top: float) -> int:
    return HEIGHT - round(HEIGHT * min(1.0, value / top))


def scale_maximum(most: float) -> float:
    """The smallest round number (1, 2 or 5 times a power of ten) that is not below the largest value."""
    if most <= 0:
        return 1.0
    size = 1.0
    while size * 10 <= most:
        size *= 10
    while size > most:
        size /= 10
    return next(size * n for n in (1, 2, 5, 10) if most <= size * n)
