"""A sheet: the list of one subject, spelled like a ModelAdmin (D170). Pages, terminals and JSON render it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from django_rtq.console.acting.verb import Verb
from django_rtq.console.reading.readers import Readers
from django_rtq.console.render.column import Column

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows of a list, and in which order: what an address or a command line says."""

    search: str = ""
    state: str = ""  # one of the filters; "": all rows
    sort: str = ""  # the name of a column
    is_reversed: bool = False
    page: int = 1

    def query(self, order: str) -> dict[str, object]:
        """As parameters of an address, without the defaults. `order`: the usual one."""
        sort = ("-" if self.is_reversed else "") + self.sort
        return {
            "search": self.search,
            "state": self.state,
            "sort": "" if sort == order else sort,
            "page": self.page if self.page > 1 else "",
        }

    def sorted_by(self, name: str) -> Wanted:
        """The first page in that order; reversed, if it is this order."""
        return replace(self, sort=name, is_reversed=name == self.sort and not self.is_reversed, page=1)


class Found(NamedTuple):
    """What was found."""

    rows: Sequence[Any]  # of this page
    matching: int  # on all pages: rows, or sections if there are some
    known: int  # whatever was wanted
    note: str = ""  # what has to be known of them


class Filter(NamedTuple):
    """To which rows a list can be limited."""

    title: Any
    fits: Callable[[Any], bool] = lambda row: True  # unused where the sheet asks Redis for those of a state


class Empty(NamedTuple):
    """What a list without rows says."""

    title: Any
    text: Any = ""
    code: str = ""  # to type


class Sheet(Generic[Row]):
    """The list of a subject. A subclass declares it, and says how its rows are read."""

    model: ClassVar[str]  # its entry in Django's menu, in lower case: the addresses of its pages begin with it
    list_page: ClassVar[str] = "changelist"  # the address of the list, after that
    title: ClassVar[Any]
    key: ClassVar[str] = "name"  # the attribute that names a row
    columns: ClassVar[Sequence[Column]]
    actions: ClassVar[Sequence[Verb]] = ()  # with one row
    filters: ClassVar[Mapping[str, Filter]] = {}
    order: ClassVar[str] = ""  # the name of the column by which it is sorted; "": as it is read
    section: ClassVar[str] = ""  # the column whose values are headings on pages. Its rows are read in that order
    unnamed: ClassVar[Any] = ""  # the heading of the section whose rows have no such value
    per_page: ClassVar[int] = 50  # rows or sections
    css: ClassVar[str] = "rtq-cards"  # of the table: a row is a card on a phone. Others have rules of their own there
    searches: ClassVar[Any] = ""  # the label of the search by name; "": there is none
    empty: ClassVar[Empty]
    about: ClassVar[Any] = ""  # above the list
    note: ClassVar[Any] = ""  # below the list, for those who may act

    def read(self, readers: Readers) -> Sequence[Row]:
        """All rows."""
        raise NotImplementedError

    def facts(self, row: Row) -> Mapping[str, Any]:
        """What JSON says of a row beside the columns."""
        return {}

    def as_dict(self, row: Row, *, of_shards: bool = False) -> dict[str, Any]:
        """A row as JSON: its columns, and what else is known of it. `of_shards`: all shards were read."""
        known = self.facts(row)
        columns = (each for each in self.columns if (of_shards or not each.is_of_shards) and each.name not in known)
        return {**{column.name: column.raw(row) for column in columns}, **known}

    def where(self, row: Row) -> tuple[Sequence[str], Mapping[str, str]]:
        """What an address of an action says of a row: in its path, and in its query."""
        return [self.name_of(row)], {}

    def summary(self, rows: Sequence[Row]) -> str:
        """What the heading of a section says beside its name."""
        return ""

    def find(self, readers: Readers, wanted: Wanted) -> Found:
        """The rows of a page of the list. For a list that is too long for it, a subclass asks Redis."""
        return self.page(self.read(readers), wanted)

    def page(self, rows: Sequence[Row], wanted: Wanted) -> Found:
        """Of all rows, those of a page of the list."""
        groups = self.groups(self.matching(rows, wanted))
        shown = [row for group in groups[self.places(wanted)] for row in group]
        return Found(shown, len(groups), len(rows))

    def places(self, wanted: Wanted) -> slice:
        """Where the rows of a page are, or its sections, among those of all pages."""
        start = (wanted.page - 1) * self.per_page
        return slice(start, start + self.per_page)

    def matching(self, rows: Sequence[Row], wanted: Wanted) -> list[Row]:
        """The rows that are wanted, sorted."""
        search, fits = wanted.search.casefold(), self.filters[wanted.state].fits if wanted.state else None
        found = [row for row in rows if search in self.name_of(row).casefold() and (fits is None or fits(row))]
        return self.sorted(found, wanted) if wanted.sort else found

    def sorted(self, rows: Sequence[Row], wanted: Wanted) -> list[Row]:
        """The rows in that order: numbers from the greatest, texts from A. Those without a value come last."""
        column = self.column(wanted.sort)
        known = [row for row in rows if column.of(row) is not None]
        known.sort(key=column.of, reverse=column.kind.is_number is not wanted.is_reversed)
        return [*known, *(row for row in rows if column.of(row) is None)]

    def groups(self, rows: Sequence[Row]) -> list[list[Row]]:
        """The rows of each section; without sections, each row."""
        if not self.section:
            return [[row] for row in rows]
        return [list(group) for _, group in groupby(rows, self.column(self.section).of)]

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def name_of(self, row: Row) -> str:
        """What names a row in addresses."""
        return str(getattr(row, self.key))
