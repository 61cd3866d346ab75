"""Words, numbers and pictures for the templates of the admin."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import django
from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_rtq.admin.display import charts, sanitize
from django_rtq.admin.display.formatting import (
    EMPTY_VALUE,
    format_duration,
    format_moment,
    format_number,
    format_percent,
)
from django_rtq.admin.urls import page_url

register = template.Library()
register.filter("rtq_number", format_number)
register.filter("rtq_percent", format_percent)
register.filter("rtq_duration", format_duration)


@register.filter
def rtq_text(text: object, most: int = 200) -> str:
    """Text of a job: what does not print is escaped, and it is cut."""
    return sanitize.clean_text(text, most)


@register.filter
def rtq_json(value: Any, most: int = 0) -> str:
    """A value of a job as indented JSON, cut."""
    return sanitize.pretty_json(value, most or sanitize.MAX_VALUE_LENGTH)


@register.filter
def rtq_short(task: object) -> str:
    """The last part of a dotted name."""
    return sanitize.clean_text(task, 300).rpartition(".")[2]


@register.simple_tag
def rtq_ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or until then, with the moment itself when pointed at."""
    if moment is None:
        return EMPTY_VALUE
    seconds = ((now or datetime.now(timezone.utc)) - moment).total_seconds()
    text = _("in %(duration)s") if seconds < 0 else _("%(duration)s ago")
    return rtq_moment(moment, text % {"duration": format_duration(abs(seconds) if abs(seconds) >= 1 else 1.0)})


@register.simple_tag
def rtq_moment(moment: datetime | None, text: str = "") -> str:
    """A moment in the reader's zone, to the second; or a text that shows it when pointed at."""
    if moment is None:
        return EMPTY_VALUE
    whole = format_moment(moment)
    return format_html('<time datetime="{}" title="{}" dir="auto">{}</time>', moment.isoformat(), whole, text or whole)


@register.simple_tag
def rtq_sparkline(values: list[float], label: str) -> SafeString:
    """A small line of figures, without axes."""
    return charts.sparkline(values, label)


@register.simple_tag(takes_context=True)
def rtq_url(context: template.Context, name: str, *args: str, **query: object) -> str:
    """The address of a page of ours, on the admin site that this is."""
    return page_url(str(context.get("site_name") or "admin"), name, *args, query=query)


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
