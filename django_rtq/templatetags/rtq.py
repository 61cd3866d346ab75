"""Words, numbers and pictures for the pages of the admin."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import django
from django import template
from django.utils.formats import date_format, number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

register = template.Library()

NOTHING = "\N{EN DASH}"


@register.filter
def rtq_text(text: object, most: int = 200) -> str:
    """Text of a job: what does not print is escaped, and it is cut."""
    return shown.clean_text(text, most)


@register.filter
def rtq_json(value: Any, most: int = 0) -> str:
    """A value of a job as indented JSON, cut."""
    return shown.pretty(value, most or shown.LONGEST_VALUE)


@register.filter
def rtq_short(task: object) -> str:
    """The last part of a dotted name."""
    return shown.clean_text(task, 300).rpartition(".")[2]


@register.filter
def rtq_number(value: float | None) -> str:
    """1234 as 1,234, in the manner of the language; 0.25 keeps two digits."""
    if value is None:
        return NOTHING
    if 0 <= value < 1000 and value == int(value):
        return str(int(value))
    digits = 0 if value == int(value) or value >= 100 else 1 if value >= 1 else 2
    return number_format(round(value, digits), decimal_pos=digits, force_grouping=True)


@register.filter
def rtq_percent(part: float | None) -> str:
    """0.25 as 25 %."""
    if part is None:
        return NOTHING
    if 0 < part < 0.001:
        return _("< %(number)s %%") % {"number": number_format(0.1, decimal_pos=1)}
    digits = 1 if 0 < part < 0.1 else 0
    return _("%(number)s %%") % {"number": number_format(round(100 * part, digits), decimal_pos=digits)}


@register.filter
def rtq_duration(seconds: float | None) -> str:
    """How long, in the unit that a person would take."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < 0.0005:
        return _("< 1 ms")
    if seconds < 0.9995:
        return _("%(number)s ms") % {"number": number_format(round(seconds * 1000))}
    if seconds < 9.95:
        return _("%(number)s s") % {"number": number_format(round(seconds, 1), decimal_pos=1)}
    for most, size, unit in _UNITS:
        if seconds < most:
            return unit() % {"number": number_format(round(seconds / size), force_grouping=True)}
    return _("%(number)s d") % {"number": number_format(round(seconds / 86_400), force_grouping=True)}


@register.simple_tag
def rtq_ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or until then, with the moment itself when pointed at."""
    if moment is None:
        return NOTHING
    seconds = ((now or datetime.now(timezone.utc)) - moment).total_seconds()
    text = _("in %(duration)s") if seconds < 0 else _("%(duration)s ago")
    return rtq_moment(moment, text % {"duration": rtq_duration(abs(seconds) if abs(seconds) >= 1 else 1.0)})


@register.simple_tag
def rtq_moment(moment: datetime | None, text: str = "") -> str:
    """A moment in the reader's zone, to the second; or a text that shows it when pointed at."""
    if moment is None:
        return NOTHING
    local = localtime(moment)
    whole = f"{date_format(local, 'Y-m-d H:i:s')} {local.strftime('%Z')}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), whole, text or whole)


@register.simple_tag
def rtq_sparkline(values: list[float], label: str) -> SafeString:
    """A small line of figures, without axes."""
    return charts.sparkline(values, label)


@register.simple_tag(takes_context=True)
def rtq_url(context: template.Context, name: str, *args: str, **query: object) -> str:
    """The address of a page of ours, on the admin site that this is."""
    return address(str(context.get("site_name") or "admin"), name, *args, query=query)


@register.simple_tag(takes_context=True)
def rtq_nonce(context: template.Context) -> str:
    """The nonce of a content security policy, where there is one: Django's from 6.0 on, or that of django-csp."""
    request = context.get("request")
    for name in ("_csp_nonce", "csp_nonce"):
        nonce = getattr(request, name, None)
        if nonce is not None:  # Django's is false until somebody asks for its text
            return format_html(' nonce="{}"', str(nonce))
    return ""


@register.simple_tag
def rtq_lists_breadcrumbs() -> bool:
    """Whether this Django writes breadcrumbs as a list."""
    return django.VERSION >= (6, 1)


_UNITS: tuple[tuple[float, float, Callable[[], str]], ...] = (
    (119.5, 1, lambda: _("%(number)s s")),
    (7200, 60, lambda: _("%(number)s min")),
    (172_800, 3600, lambda: _("%(number)s h")),
)


# Last: these write with what stands above, and a theme may load a template, and us with it, before the admin.
from django_rtq.admin import charts, shown  # noqa: E402
from django_rtq.admin.addresses import address  # noqa: E402
