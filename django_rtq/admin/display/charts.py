"""Charts, drawn as SVG on the server. Colours are CSS classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

SPARKLINE_POINTS, HEIGHT = (
    30,
    24,
)  # small: an open page fetches fifty sparklines at a time


class Line(NamedTuple):
    """One line of a chart."""

    title: str
    css: str  # the CSS class
    values: Sequence[float]


def polyline_points(values: Sequence[float], width: float, height: float, maximum: float) -> str:
    """The `points` attribute of an SVG polyline. `top` is the value at the upper edge."""
    step = width / max(1, len(values) - 1)
    scale = (height - 2) / maximum if maximum > 0 else 0
    last = len(values) - 1
    return " ".join(
        f"{index * step:.0f},{height - 1 - value * scale:.0f}"
        for index, value in enumerate(values)
        if index in (0, last)
        or not values[index - 1]
        == value
        == values[index + 1]  # leave out the middle of flat stretches, which are most of the points
    )


def sparkline(values: Sequence[float], label: str) -> SafeString:
    """A small line without axes. Empty if there are no values."""
    every = max(1, -(-len(values) // SPARKLINE_POINTS))
    buckets = [sum(values[i : i + every]) for i in range(len(values) % every, len(values), every)]
    return format_html(
        '<svg class="rtq-spark" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none">'
        '<title>{}</title><polyline points="{}"/></svg>',
        SPARKLINE_POINTS - 1,
        HEIGHT,
        label,
        polyline_points(buckets, SPARKLINE_POINTS - 1, HEIGHT, max(buckets, default=0)),
    )


def chart(lines: Sequence[Line], label: str, *, width: float = 600.0, height: float = 120.0) -> SafeString:
    """Several lines on one scale, with three grid lines."""
    maximum = scale_maximum(max((max(line.values, default=0) for line in lines), default=0))
    grid = format_html_join(
        "",
        '<line class="rtq-mark" x1="0" x2="{}" y1="{}" y2="{}"/>',
        ((int(width), y, y) for y in (1, round(height / 2), round(height - 1))),
    )
    drawn = format_html_join(
        "",
        '<polyline class="{}" points="{}"><title>{}</title></polyline>',
        ((line.css, polyline_points(line.values, width, height, maximum), line.title) for line in lines),
    )
    return format_html(
        '<svg class="rtq-chart" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}{}</svg>',
        int(width),
        int(height),
        label,
        grid,
        drawn,
    )


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
