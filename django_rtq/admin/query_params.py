"""What stands in addresses and forms, checked and bounded before anything else sees it."""

from __future__ import annotations

from collections.abc import Container

from django.http import HttpRequest, QueryDict
from django.utils.http import url_has_allowed_host_and_scheme

from django_rtq.conf import QUEUE_NAME

MAX_TEXT_LENGTH = 300  # characters of one parameter
MAX_IDS = 1000  # ticked jobs that one form may name


def get_text(given: QueryDict, name: str, most: int = MAX_TEXT_LENGTH) -> str:
    """A text without blanks around it; "" when it is missing, too long, or holds what does not print."""
    value = given.get(name, "").strip()
    return value if len(value) <= most and value.isprintable() else ""


def get_choice(given: QueryDict, name: str, choices: Container[str], default: str) -> str:
    """One of some words."""
    value = given.get(name, "")
    return value if value in choices else default


def get_int(given: QueryDict, name: str, default: int, *, least: int = 0, most: int = 2**53) -> int:
    """A whole number within bounds; the default for all else."""
    value = given.get(name, "")
    if not (value.isascii() and value.isdecimal() and len(value) <= 16):
        return default
    return min(max(int(value), least), most)


def get_ids(given: QueryDict) -> list[str]:
    """The jobs that were ticked, each once, as far as one form may name them."""
    return [i for i in dict.fromkeys(given.getlist("id")) if 0 < len(i) <= MAX_TEXT_LENGTH][:MAX_IDS]


def get_next_url(request: HttpRequest, otherwise: str) -> str:
    """Where to go after an action, or back from its question: the page that was left, if it is one of this site."""
    wanted = (request.POST if request.method == "POST" else request.GET).get("next", "")
    is_ours = len(wanted) <= 4000 and url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else otherwise


def get_queue_name(given: QueryDict) -> str:
    """The name of a queue; "" for what cannot be one."""
    name = given.get("queue", "")
    return name if QUEUE_NAME.fullmatch(name) else ""
