"""URLs of the pages. Names of queues and jobs are quoted like primary keys in Django's admin."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import reverse


def page_url(site_name: str, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    """The URL of a page, by its name without "django_rtq_". Empty query parameters are left out."""
    address = reverse(f"admin:django_rtq_{name}", args=[quote(arg) for arg in args], current_app=site_name)
    given = {key: value for key, value in (query or {}).items() if value not in (None, "")}
    return f"{address}?{urlencode(given)}" if given else address
