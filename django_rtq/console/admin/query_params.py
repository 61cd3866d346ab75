"""Reads and validates what requests say: parameters of URLs and forms, and the header of a refresh."""

from __future__ import annotations

from collections.abc import Container

from django.http import HttpRequest, QueryDict
from django.utils.http import url_has_allowed_host_and_scheme

from django_rtq.core.conf.queue_options import is_queue_name

MAX_TEXT_LENGTH = 300  # characters
MAX_CURSOR = 4000  # characters: it may have a place in each of many shards
MAX_IDS = 1000  # selected jobs in one form
MAX_DIGESTS = 100
#: Sent by live.js, which fetches the page again (D42): the digests of its regions. Those that have not changed are sent
#: empty, and nothing but regions is rendered.
REFRESH_HEADER = "X-RTQ-Refresh"


def get_text(data: QueryDict, name: str, max_length: int = MAX_TEXT_LENGTH) -> str:
    """A stripped text. "" if it is missing, too long or contains non-printable characters."""
    value = data.get(name, "").strip()
    return value if len(value) <= max_length and value.isprintable() else ""


def get_choice(data: QueryDict, name: str, choices: Container[str], default: str) -> str:
    """One of `choices`."""
    value = data.get(name, "")
    return value if value in choices else default


def get_int(data: QueryDict, name: str, default: int, *, minimum: int = 0, maximum: int = 2**53) -> int:
    """A whole number, clamped to the bounds. The default if it is invalid."""
    value = data.get(name, "")
    if not (value.isascii() and value.isdecimal() and len(value) <= 16):
        return default
    return min(max(int(value), minimum), maximum)


def get_ids(data: QueryDict) -> list[str]:
    """The ids of the selected jobs, without duplicates, MAX_IDS at most."""
    return [i for i in dict.fromkeys(data.getlist("id")) if 0 < len(i) <= MAX_TEXT_LENGTH][:MAX_IDS]


def get_digests(request: HttpRequest) -> frozenset[str]:
    """The regions that the browser has; empty if this is no refresh."""
    return frozenset(request.headers.get(REFRESH_HEADER, "").split()[:MAX_DIGESTS])


def given(request: HttpRequest) -> QueryDict:
    """What the address of a request says, and its form over that."""
    data = request.GET.copy()
    for name, texts in request.POST.lists():
        data.setlist(name, texts)
    return data


def get_next_url(request: HttpRequest, default: str) -> str:
    """Where to redirect after an action: the page the user came from, if it is on this site."""
    target = given(request).get("next", "")
    is_ours = len(target) <= 4000 and url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else default


def get_queue_name(data: QueryDict) -> str:
    """The name of a queue. "" if it is invalid."""
    name = data.get("queue", "")
    return name if is_queue_name(name) else ""
