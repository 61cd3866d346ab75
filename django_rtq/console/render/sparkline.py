"""Small lines without axes."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

POINTS, HEIGHT = 30, 24  # small: an open page fetches fifty of them at a time


def sparkline(values: Sequence[float], label: str) -> SafeString:
    """A line. Empty if there are no values."""
    every = max(1, -(-len(values) // POINTS))
    buckets = [sum(values[i : i + every]) for i in range(len(values) % every, len(values), every)]
    return format_html(
        '<svg class="rtq-spark" viewBox="0 0 {} {}" role="img" preserveAspectRatio="none">'
        '<title>{}</title><polyline points="{}"/></svg>',
        POINTS - 1,
        HEIGHT,
        label,
        polyline_points(buckets, POINTS - 1, HEIGHT, max(buckets, default=0)),
    )


def polyline_points(values: Sequence[float], width: float, height: float, maximum: float) -> str:
    """The `points` attribute of an SVG polyline. `maximum` is the value at the upper edge."""
    step = width / max(1, len(values) - 1)
    scale = (height - 2) / maximum if maximum > 0 else 0
    last = len(values) - 1
    return " ".join(
        f"{index * step:.0f},{height - 1 - value * scale:.0f}"
        for index, value in enumerate(values)
        # Leave out the middle of flat stretches, which are most of the points.
        if index in (0, last) or not values[index - 1] == value == values[index + 1]
    )
