"""Histograms of durations, drawn as SVG on the server, with their numbers for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_rtq.formatting import format_duration, format_number
from django_rtq.inspector.metrics.histograms import Bar, bars

WIDTH, HEIGHT = 600, 120
_SVG = (
    '<svg class="rtq-chart rtq-bars" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}</svg>'
)


def histogram(name: str, title: str, buckets: Mapping[int, int], *, per_second: int = 1) -> dict[str, Any]:
    """A histogram for the template `_histogram.html`. `per_second`: how many units of the buckets are a second."""
    found = bars(buckets)
    if not found:
        return {"name": name, "title": title, "is_empty": True}
    return {
        "name": name,
        "title": title,
        "svg": _svg(found, title),
        "from_text": format_duration(found[0].lower / per_second),
        "to_text": format_duration(found[-1].upper / per_second),
        "top_text": _("highest bar: %(count)s") % {"count": format_number(max(bar.number for bar in found))},
        "rows": [
            (
                format_duration(bar.lower / per_second),
                format_duration(bar.upper / per_second),
                format_number(bar.number),
            )
            for bar in found
            if bar.number
        ],
    }


def _svg(found: Sequence[Bar], label: str) -> SafeString:
    top, step = max(bar.number for bar in found), WIDTH / len(found)
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}"/>',
        (
            (f"{place * step:.1f}", f"{HEIGHT - height:.1f}", f"{max(1.0, step - 2):.1f}", f"{height:.1f}")
            for place, bar in enumerate(found)
            if bar.number
            for height in [max(1.0, bar.number / top * (HEIGHT - 2))]
        ),
    )
    return format_html(_SVG, WIDTH, HEIGHT, label, drawn)
