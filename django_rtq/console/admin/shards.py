"""What a page of the admin is about, in a project with RTQ["SHARDS"]: all shards, unless one is chosen.

The choice is in the address: `?shard=1`. Links and forms of our pages do not say it. A page that is opened from another
one is about the same, which the header Referer tells, and gets its address by a redirect. So two tabs may show two
shards. A page of a job or of a workflow is about the shard that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import parse_qs, urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_rtq.console.admin.query_params import REFRESH_HEADER
from django_rtq.console.nouns import Place
from django_rtq.console.shards import AllShards
from django_rtq.core.broker.task_backends import place_of_job, shard_numbers, shard_of, shard_place
from django_rtq.scale.placement import pinned_in

ALL = "all"
_OF_LISTS = ("shard", "after", "before", "page", "seen", "stop")  # parameters that are of one choice only

#: Gets what it is about, and what raises BrokerError if that cannot be shown.
View = Callable[[Place, Callable[[], object]], HttpResponse]


def in_shard(request: HttpRequest, view: View) -> HttpResponse:
    """The answer of a view about all shards, or that of its job or workflow, of the address, or of the page before."""
    numbers, is_read = shard_numbers(), request.method in ("GET", "HEAD")
    own = place_of_job("", own_id) if (own_id := _own_id(request)) else None
    said = _choice(request.GET.get("shard", ""))
    chosen = _choice_before(request) if said is None else said
    if chosen is None and not is_read and own is None:
        return HttpResponseBadRequest(
            _("Your browser does not say which shard this page is about (header Referer). Nothing was changed.")
        )
    if said is None and is_read and chosen not in (None, ALL) and REFRESH_HEADER not in request.headers:
        query = request.GET.copy()
        query["shard"] = str(chosen)
        return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
    if own is None and chosen in (None, ALL) and len(numbers) > 1:
        return _in_all(request, view, is_read=is_read)
    place = own if own is not None else shard_place(int(chosen)) if chosen not in (None, ALL) else ""
    return view(Place(pinned_in(place)), partial(_check, shard_of(place)))


def _own_id(request: HttpRequest) -> str:
    """The id of the job or workflow that a page is about, which is in one shard; "": it is about something else."""
    found = request.resolver_match
    is_of_one = found and (found.url_name or "").startswith(("django_rtq_workflow_", "django_rtq_job_"))
    return str(found.kwargs.get("name", "")) if found and is_of_one else ""


def _in_all(request: HttpRequest, view: View, *, is_read: bool) -> HttpResponse:
    readers = AllShards()
    answer = view(Place(readers=readers), lambda: None)
    for number in () if is_read else readers.silent:
        text = _("Shard %(number)d does not answer. What you asked for was not done there, or only in part.")
        messages.warning(request, text % {"number": number})
    return answer


def _check(number: int | None) -> None:
    """Raises BrokerUnavailable if the shard does not answer in the time in which pages of all shards do without it."""
    if number is not None:
        AllShards().ask(lambda readers: readers.queues.names(), [number])


def _choice_before(request: HttpRequest) -> str | None:
    """The choice of the page with the link or form; None: it is not known."""
    referer = urlsplit(request.headers.get("Referer", ""))
    if referer.netloc != request.get_host():
        return None
    return _choice(parse_qs(referer.query).get("shard", [ALL])[0])


def _choice(text: str) -> str | None:
    is_number = text.isdecimal() and len(text) < 5 and int(text) in shard_numbers()
    return text if is_number or text == ALL else None


def shard_links(request: HttpRequest, overview_url: str, current: int | None) -> list[dict[str, object]]:
    """Links to the same list of all shards and of each; of a job or workflow, to the overview. `current`: None: all."""
    query, path = request.GET.copy(), request.path
    for name in _OF_LISTS:
        query.pop(name, None)
    if _own_id(request):
        query.clear()
        path = overview_url
    titles = {ALL: _("All shards"), **{str(n): _("Shard %(number)d") % {"number": n} for n in shard_numbers()}}
    links = []
    for choice, title in titles.items():
        query["shard"] = choice
        is_current = choice == (ALL if current is None else str(current))
        links.append({"title": title, "url": f"{path}?{query.urlencode()}", "is_current": is_current})
    return links if len(titles) > 2 else links[1:]
