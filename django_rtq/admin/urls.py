"""URLs of the pages. Names of queues and jobs are quoted like primary keys in Django's admin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import reverse

#: Builds the URL of a page from its name: PageAdmin.url.
PageUrl = Callable[..., str]


def page_url(site_name: str, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    """The URL of a page, by its name without "django_rtq_". Empty query parameters are left out."""
    found = reverse(f"admin:django_rtq_{name}", args=[quote(arg) for arg in args], current_app=site_name)
    given = {key: value for key, value in (query or {}).items() if value not in (None, "")}
    return f"{found}?{urlencode(given)}" if given else found
