"""A list that is searched, sorted and paged: what its URL says, the links of its headings, and its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from django.http import QueryDict
from django.utils.translation import gettext as _

from django_rtq.console.admin import query_params
from django_rtq.console.formatting import format_number

MAX_PAGES = 10**6

P = TypeVar("P", bound="ListParams")
Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class ListParams:
    """What the URL of a list says. A subclass says what it can be sorted by, if it can."""

    PER_PAGE: ClassVar[int] = 50
    TITLES: ClassVar[Mapping[str, Any]] = {}  # what it can be sorted by -> the heading
    STATES: ClassVar[Sequence[str]] = ()  # to which rows it can be limited
    FIRST: ClassVar[str] = ""  # the order if the URL names none
    NAME: ClassVar[str] = "name"  # sorted from A, the others from the greatest

    search: str = ""
    state: str = ""  # one of STATES, or "" for all
    sort: str = ""
    is_reversed: bool = False
    page: int = 1

    @classmethod
    def read(cls: type[P], data: QueryDict) -> P:
        """From a query string. Invalid values are ignored."""
        sort = data.get("sort", "")
        known = sort.removeprefix("-") in cls.TITLES
        return cls(
            search=query_params.get_text(data, "search"),
            state=query_params.get_choice(data, "state", cls.STATES, ""),
            sort=sort.removeprefix("-") if known else cls.FIRST,
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
            "sort": "" if sort == self.FIRST else sort,
            "page": self.page if self.page > 1 else "",
        }

    @property
    def start(self) -> int:
        """How many rows come before those of this page."""
        return (self.page - 1) * self.PER_PAGE

    def of(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows of this page."""
        return rows[self.start : self.start + self.PER_PAGE]

    def sorted_by(self: P, sort: str) -> P:
        """The first page in that order; reversed, if it is this order."""
        return replace(self, sort=sort, is_reversed=sort == self.sort and not self.is_reversed, page=1)


def paged_context(
    params: ListParams, shown: int, matching: int, url: Callable[[Mapping[str, object]], str]
) -> dict[str, Any]:
    """What the template shows, if so many of the matching rows are on this page. `url` gives the URL of the list with
    some parameters."""
    last = max(1, -(-matching // params.PER_PAGE))

    def page_url(page: int) -> str:
        return url(replace(params, page=page).query) if 1 <= page <= last else ""

    return {
        "params": params,
        "columns": [_column(params, sort, url) for sort in params.TITLES],
        "sort_value": params.query["sort"],
        "range_text": _range_text(params, shown, matching),
        "previous_url": page_url(min(params.page - 1, last)),
        "next_url": page_url(params.page + 1),
        "all_url": url(replace(params, search="", state="", page=1).query),
    }


def _column(params: ListParams, sort: str, url: Callable[[Mapping[str, object]], str]) -> dict[str, Any]:
    is_current, is_number = sort == params.sort, sort != params.NAME
    is_ascending = params.is_reversed is is_number
    return {
        "title": params.TITLES[sort],
        "url": url(params.sorted_by(sort).query),
        "is_number": is_number,
        "order": ("ascending" if is_ascending else "descending") if is_current else "",
    }


def _range_text(params: ListParams, shown: int, matching: int) -> str:
    if not shown:
        return ""
    return _("%(first)s–%(last)s of %(number)s") % {  # noqa: RUF001
        "first": format_number(params.start + 1),
        "last": format_number(params.start + shown),
        "number": format_number(matching),
    }
