"""Template tags and filters of the admin pages."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import django
from django import template
from django.utils.html import format_html

from django_rtq.console import sanitize
from django_rtq.console.admin.navigation import page_url
from django_rtq.console.formatting import format_duration, format_number
from django_rtq.console.render.column import ago_html, moment_html

_TOKEN = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")\w+')  # another one in each answer

register = template.Library()
register.filter("rtq_number", format_number)
register.filter("rtq_duration", format_duration)
register.simple_tag(ago_html, name="rtq_ago")
register.simple_tag(moment_html, name="rtq_moment")


@register.filter
def rtq_text(text: object, max_length: int = 200) -> str:
    """Untrusted text: escape non-printable characters, and truncate."""
    return sanitize.clean_text(text, max_length)


@register.filter
def rtq_json(value: Any, max_length: int = 0) -> str:
    """A value as indented JSON, truncated."""
    return sanitize.pretty_json(value, max_length or sanitize.MAX_VALUE_LENGTH)


@register.filter
def rtq_short(task: object) -> str:
    """The last part of a dotted name."""
    return sanitize.clean_text(task, 300).rpartition(".")[2]


@register.filter
def rtq_rough(number: float) -> str:
    """A number in four characters: 999, 1.2k, 12k, 3M."""
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if number >= size:
            return format_number(round(number / size, 1 if number < 10 * size else 0)) + unit
    return format_number(number)


@register.simple_tag(takes_context=True)
def rtq_url(context: template.Context, name: str, *args: str, **query: object) -> str:
    """The URL of a page on the current admin site."""
    return page_url(str(context.get("site_name") or "admin"), name, *args, query=query)


@register.simple_tag(takes_context=True)
def rtq_nonce(context: template.Context) -> str:
    """The nonce of the content security policy, if there is one: Django's (from 6.0 on) or django-csp's."""
    request = context.get("request")
    for name in ("_csp_nonce", "csp_nonce"):
        nonce = getattr(request, name, None)
        if nonce is not None:  # Django's nonce is falsy until its text is requested
            return format_html(' nonce="{}"', str(nonce))
    return ""


def content_digest(text: str) -> str:
    """A short digest of HTML, whatever its CSRF tokens are."""
    return hashlib.blake2b(_TOKEN.sub("", text).encode(), digest_size=9).hexdigest()


@register.simple_block_tag(takes_context=True)
def rtq_live(context: template.Context, content: str, name: str) -> str:
    """A region of a page. A refresh replaces it, and leaves out what the page has already."""
    digest = content_digest(content)
    is_known = digest in (context.get("known_digests") or ())
    html = '<div data-rtq-live="{}" data-rtq-digest="{}">{}</div>'
    return format_html(html, name, digest, "" if is_known else content)


@register.simple_tag
def rtq_lists_breadcrumbs() -> bool:
    """Whether this version of Django renders breadcrumbs as a list."""
    return django.VERSION >= (6, 1)
