"""Which shard a page of the admin is about, in a project with RTQ["SHARDS"].

It is in the address: `?shard=1`. Links and forms of our pages do not say it. A page that is opened from another one is
about the same shard, which the header Referer tells, and gets its address by a redirect. So two tabs may show two
shards. The overview is about all of them together, unless a shard is chosen: `?shard=all`.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.admin.refreshing import REFRESH_HEADER
from django_rtq.inspector.carrying import current_place
from django_rtq.inspector.places import shard_numbers, shard_of, shard_place, view_backend

ALL = "all"


def in_shard(request: HttpRequest, job_id: str, view: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer of a view about the shard of a job, of the address, or of the page before."""
    if not shard_numbers():
        return view()
    is_read = request.method in ("GET", "HEAD")
    said = 0 if is_read and request.GET.get("shard") == ALL else _shard(request.GET.get("shard", ""))
    number = shard_of(current_place("", job_id)) if job_id else _shard_before(request) if said is None else said
    if number is None and not is_read:
        return HttpResponseBadRequest(
            _("Your browser does not say which shard this page is about (header Referer). Nothing was changed.")
        )
    number = number or 0
    if number and said is None and is_read and REFRESH_HEADER not in request.headers:
        query = request.GET.copy()
        query["shard"] = str(number)
        return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
    with view_backend(shard_place(number)):
        answer = view()
        if hasattr(answer, "render"):
            answer.render()  # what it shows may ask Redis
        return answer


def wants_all(request: HttpRequest) -> bool:
    """Whether the overview is about all shards: none is chosen."""
    said = request.GET.get("shard")
    return len(shard_numbers()) > 1 and (said == ALL or _shard(said or "") is None)


def _shard_before(request: HttpRequest) -> int | None:
    """The shard of the page with the link or form; None: it is not known."""
    referer = urlsplit(request.headers.get("Referer", ""))
    if referer.netloc != request.get_host():
        return None
    return _shard(parse_qs(referer.query).get("shard", ["0"])[0])


def _shard(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 5 and int(text) in shard_numbers() else None
