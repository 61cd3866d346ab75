"""The list of clients: what its URL says, the links of its headings, and its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_rtq.admin import query_params
from django_rtq.formatting import format_duration, format_number
from django_rtq.inspector.clients.client_list import SORTS, STATES, ClientPage
from django_rtq.inspector.clients.queue_clients import MOST

PER_PAGE = 50
MAX_PAGES = 10**6
_TITLES = {
    "name": gettext_lazy("Client"),
    "queued": gettext_lazy("Queued"),
    "scheduled": gettext_lazy("Scheduled"),
    "running": gettext_lazy("Running"),
    "oldest": gettext_lazy("Oldest wait"),
    "starts": gettext_lazy("Starts"),
    "time": gettext_lazy("Run time"),
    "fair": gettext_lazy("Fair share"),
}
_STATE_TITLES = {
    "": gettext_lazy("All"),
    "waiting": gettext_lazy("With waiting jobs"),
    "paused": gettext_lazy("Paused"),
    "limited": gettext_lazy("With limits"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientListParams:
    """What the URL of the list says."""

    search: str = ""
    state: str = ""  # one of STATES, or "" for all
    sort: str = "queued"
    is_reversed: bool = False
    page: int = 1

    @classmethod
    def read(cls, data: QueryDict) -> ClientListParams:
        """From a query string. Invalid values are ignored."""
        sort = data.get("sort", "")
        known = sort.removeprefix("-") in SORTS
        return cls(
            search=query_params.get_text(data, "search"),
            state=query_params.get_choice(data, "state", STATES, ""),
            sort=sort.removeprefix("-") if known else "queued",
            is_reversed=known and sort.startswith("-"),
            page=query_params.get_int(data, "page", 1, minimum=1, maximum=MAX_PAGES),
        )

    @property
    def query(self) -> Mapping[str, object]:
        """As URL parameters, without the defaults."""
        sort = ("-" if self.is_reversed else "") + self.sort
        return {
            "search": self.search,
            "state": self.state,
            "sort": "" if sort == "queued" else sort,
            "page": self.page if self.page > 1 else "",
        }

    @property
    def selection(self) -> Mapping[str, Any]:
        """As arguments of ClientCounts.page()."""
        return {
            "search": self.search,
            "state": self.state,
            "sort": self.sort,
            "is_reversed": self.is_reversed,
            "start": (self.page - 1) * PER_PAGE,
            "limit": PER_PAGE,
        }

    def sorted_by(self, sort: str) -> ClientListParams:
        """The first page in that order; reversed, if it is this order."""
        return replace(self, sort=sort, is_reversed=sort == self.sort and not self.is_reversed, page=1)


def list_context(
    params: ClientListParams, found: ClientPage, url: Callable[[Mapping[str, object]], str]
) -> dict[str, Any]:
    """What the template shows. `url` gives the URL of the list with some parameters."""
    last = max(1, -(-found.matching // PER_PAGE))

    def page_url(page: int) -> str:
        return url(replace(params, page=page).query) if 1 <= page <= last else ""

    return {
        "params": params,
        "found": found,
        "columns": [_column(params, sort, url) for sort in SORTS],
        "states": [
            {
                "title": title,
                "url": url(replace(params, state=state, page=1).query),
                "is_current": state == params.state,
            }
            for state, title in _STATE_TITLES.items()
        ],
        "sort_value": params.query["sort"],
        "range_text": _range_text(params, found),
        "previous_url": page_url(min(params.page - 1, last)),
        "next_url": page_url(params.page + 1),
        "all_url": url(replace(params, search="", state="", page=1).query),
        "age_text": _("Counted %(duration)s ago.") % {"duration": format_duration(max(1.0, found.age_seconds))}
        if found.age_seconds
        else "",
        "most": MOST,
    }


def _column(params: ClientListParams, sort: str, url: Callable[[Mapping[str, object]], str]) -> dict[str, Any]:
    is_current = sort == params.sort
    is_ascending = params.is_reversed is (sort != "name")
    return {
        "title": _TITLES[sort],
        "url": url(params.sorted_by(sort).query),
        "is_number": sort != "name",
        "order": ("ascending" if is_ascending else "descending") if is_current else "",
    }


def _range_text(params: ClientListParams, found: ClientPage) -> str:
    if not found.clients:
        return ""
    first = (params.page - 1) * PER_PAGE + 1
    return _("%(first)s–%(last)s of %(number)s") % {  # noqa: RUF001
        "first": format_number(first),
        "last": format_number(first + len(found.clients) - 1),
        "number": format_number(found.matching),
    }
