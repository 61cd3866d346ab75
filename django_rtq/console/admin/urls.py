"""URLs of the pages. Names of queues and jobs are quoted like primary keys in Django's admin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote as percent_quote
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, get_resolver, get_script_prefix, get_urlconf, reverse
from django.urls.resolvers import URLResolver
from django.utils.translation import get_language

_PLACES = ("rtq-first-place", "rtq-second-place")  # arguments of _cut_url()
_SAFE = "!$&'()*+,;=/~:@"  # what reverse() does not escape


def page_url(site_name: str, name: str, *args: str, query: Mapping[str, object] | None = None) -> str:
    """The URL of a page, by its name without "django_rtq_". Empty query parameters are left out."""
    quoted = [quote(arg) for arg in args]
    cut = _cut_url(
        f"admin:django_rtq_{name}",
        len(args),
        site_name,
        (get_resolver(get_urlconf()), get_script_prefix(), get_language()),
    )
    if cut and all(quoted):
        address = cut[0] + "".join(
            percent_quote(arg, safe=_SAFE) + rest for arg, rest in zip(quoted, cut[1:], strict=True)
        )
    else:
        address = reverse(f"admin:django_rtq_{name}", args=quoted, current_app=site_name)
    given = {key: value for key, value in (query or {}).items() if value not in (None, "")}
    return f"{address}?{urlencode(given)}" if given else address


@lru_cache(maxsize=512)
def _cut_url(name: str, places: int, site_name: str, context: tuple[URLResolver, str, str | None]) -> list[str]:
    """The parts of a URL around its arguments: a page has hundreds of links, and reverse() takes longer than the rest.

    `context` is what reverse() depends on as well. [] if the arguments are no plain texts.
    """
    try:
        rest = reverse(name, args=_PLACES[:places], current_app=site_name)
    except NoReverseMatch:
        return []
    parts = []
    for placeholder in _PLACES[:places]:
        part, _, rest = rest.partition(placeholder)
        parts.append(part)
    return [*parts, rest]
