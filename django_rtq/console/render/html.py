"""Sheets as tables of a page. Cells are built here because a template would need most of the page's time for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape  # that of Django takes three times as long
from types import MappingProxyType
from typing import Any, TypeAlias

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from django_rtq.console.acting.verb import Verb
from django_rtq.console.formatting import EMPTY_VALUE, format_number
from django_rtq.console.render.column import NAMES, Column, PageUrl
from django_rtq.console.render.sheet import Found, Row, Sheet, Wanted
from django_rtq.console.sanitize import clean_text

MAX_NAMES = 5  # of a cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Who looks at a page."""

    url: PageUrl
    may: Callable[[str], bool]  # whether that permission is given
    here: str = ""  # the address of the page, to which what is asked leads back
    sees_all_shards: bool = False
    tick: Any = ""  # what the box is called that selects the row %(id)s; "": there is none


Table: TypeAlias = dict[str, Any]  # what the template of a table shows


def listing(sheet: Sheet[Row], found: Found, wanted: Wanted, viewer: Viewer) -> dict[str, Any]:
    """What the template of a list shows."""

    def address(wanted: Wanted) -> str:
        return viewer.url(f"{sheet.model}_{sheet.list_page}", query=wanted.query(sheet.order))

    shown = len(sheet.groups(found.rows))
    return {
        "title": sheet.title,
        "sheet": sheet,
        "wanted": wanted,
        "found": found,
        "tables": tables(sheet, found.rows, viewer, wanted),
        "filters": [
            {"title": title, "url": address(replace(wanted, state=state, page=1)), "is_current": state == wanted.state}
            for state, title in [("", _("All")), *((name, each.title) for name, each in sheet.filters.items())]
        ]
        if sheet.filters
        else (),
        "sort_value": wanted.query(sheet.order)["sort"],
        **pager(wanted.page, sheet.per_page, shown, found.matching, lambda page: address(replace(wanted, page=page))),
        "all_url": address(replace(wanted, search="", state="", page=1)),
        "may_act": any(map(viewer.may, _permissions(sheet))),
    }


def pager(page: int, per_page: int, shown: int, matching: int, address: Callable[[int], str]) -> dict[str, str]:
    """What the template of a pager shows, if so many of the matching rows are on this page."""
    start, last = (page - 1) * per_page, max(1, -(-matching // per_page))
    numbers = {"first": start + 1, "last": start + shown, "number": matching}
    text = _("%(first)s–%(last)s of %(number)s")  # noqa: RUF001
    return {
        "range_text": text % {name: format_number(number) for name, number in numbers.items()} if shown else "",
        "previous_url": address(min(page - 1, last)) if page > 1 else "",
        "next_url": address(page + 1) if page < last else "",
    }


def tables(
    sheet: Sheet[Row],
    rows: Sequence[Row],
    viewer: Viewer,
    wanted: Wanted | None = None,
    *,
    label: Any = "",
    titles: Mapping[str, Any] = MappingProxyType({}),
) -> list[Table]:
    """The tables of a list: one, or one for each section. Heads are links if it is said what is wanted.

    `titles`: other ones of columns, by their names; None: the column is left out.
    """
    groups = sheet.groups(rows) if sheet.section else [rows] if rows else []
    columns = [
        replace(column, title=titles.get(column.name, column.title))
        for column in sheet.columns
        if column.name != sheet.section
        and titles.get(column.name, "") is not None
        and (viewer.sees_all_shards or not column.is_of_shards)
    ]
    shown = [column for column in columns if not column.under]
    under = {column.name: _under(column, columns) for column in shown}
    allowed, is_card = any(map(viewer.may, _permissions(sheet))), sheet.css == "rtq-cards"
    found = list[Table]()
    for group in groups:
        lines, title = [], ""
        for row in group:
            cells = [
                _cell(column, row, under[column.name], viewer, is_first=column is shown[0], is_card=is_card)
                for column in shown
            ]
            if viewer.tick:
                cells.insert(0, _tick(sheet.name_of(row), str(viewer.tick)))
            if allowed:
                cells.append(_menu(buttons(sheet, row, viewer)))
            lines.append(f"<tr>{''.join(cells)}</tr>")
        if sheet.section:
            title = clean_text(sheet.column(sheet.section).of(group[0]), 60) or str(sheet.unnamed)
        found.append(
            {
                "title": title,  # of the section; "": there is none
                "label": title or str(label or sheet.title),
                "summary": sheet.summary(group),
                "css": sheet.css,
                "heads": [_head(sheet, column, viewer, wanted) for column in shown],
                "rows": mark_safe("\n".join(lines)),
                "has_ticks": bool(viewer.tick),
                "has_actions": allowed,
            }
        )
    return found


def _under(column: Column, columns: Sequence[Column]) -> list[Column]:
    """What is shown with a column: first the states, which are beside its value."""
    small = [other for other in columns if other.under == column.name]
    return sorted(small, key=lambda other: not other.kind.is_state)


def figures(sheet: Sheet[Row], row: Row, viewer: Viewer) -> list[dict[str, str]]:
    """The numbers of a row, as a page about it shows them."""
    name = sheet.columns[0].name
    numbers = ((each, each.of(row)) for each in sheet.columns if each.kind.is_number and each.under != name)
    return [
        {"title": each.title, "text": mark_safe(_text(each, row, value, viewer)), "css": _tone(each, row, value)}
        for each, value in numbers
    ]


def beside_name(sheet: Sheet[Row], row: Row, viewer: Viewer) -> str:
    """What a list shows small with the name of a row."""
    small = _under(sheet.columns[0], sheet.columns)
    return mark_safe("".join(_small(column, row, viewer) for column in small))


def _permissions(sheet: Sheet[Any]) -> set[str]:
    return {verb.permission for verb in sheet.actions}


def _head(sheet: Sheet[Any], column: Column, viewer: Viewer, wanted: Wanted | None) -> dict[str, Any]:
    head = {"title": column.title, "is_number": column.kind.is_number, "url": "", "order": ""}
    if wanted is not None and column.is_sortable:
        query = wanted.sorted_by(column.name).query(sheet.order)
        head["url"] = viewer.url(f"{sheet.model}_{sheet.list_page}", query=query)
        if wanted.sort == column.name:
            head["order"] = "ascending" if wanted.is_reversed is column.kind.is_number else "descending"
    return head


def _cell(column: Column, row: Any, under: Sequence[Column], viewer: Viewer, *, is_first: bool, is_card: bool) -> str:
    value, is_number = column.of(row), column.kind.is_number
    if value == 0 and is_number and not is_card:
        return '<td class="rtq-zero">0</td>'
    inside = _text(column, row, value, viewer) + "".join(_small(other, row, viewer) for other in under)
    css = "rtq-n" if is_number and is_card else ""
    if more := _tone(column, row, value):
        css = f"{css} {more}".strip()
    attributes = f' class="{css}"' if css else ""
    if column.hint and (hint := column.hint(row)):
        attributes += f' title="{escape(clean_text(hint, 300))}"'
    if is_first:
        return f'<th scope="row"{attributes}>{inside}</th>'
    label = f' data-rtq-label="{escape(str(column.title))}"' if is_card and inside else ""
    return f"<td{attributes}{label}>{inside}</td>"


def cell_html(sheet: Sheet[Row], name: str, row: Row, url: PageUrl) -> str:
    """What a cell of a list has, for other lists."""
    viewer, column = Viewer(url=url, may=lambda permission: True), sheet.column(name)
    under = (_small(other, row, viewer) for other in _under(column, sheet.columns))
    return mark_safe((_text(column, row, column.of(row), viewer) or "-") + "".join(under))


def _tone(column: Column, row: Any, value: Any) -> str:
    """The class of a value."""
    return "rtq-zero" if column.kind.is_number and not value else column.css(row) if column.css else ""


def _text(column: Column, row: Any, value: Any, viewer: Viewer) -> str:
    if value is None or value in ("", []):
        return EMPTY_VALUE if column.kind.is_number else ""
    if column.kind is NAMES:
        return _names(column, value, viewer)
    text = _escaped(column.kind.html(value))
    href = column.link(row, viewer.url) if column.link and (value or not column.kind.is_number) else ""
    return f'<a href="{escape(href)}">{text}</a>' if href else text


def _escaped(text: str) -> str:
    return text if isinstance(text, SafeString) else escape(text)


def _names(column: Column, names: Sequence[str], viewer: Viewer) -> str:
    shown, others = names[:MAX_NAMES], names[MAX_NAMES:]
    links = ((column.link(name, viewer.url) if column.link else "", clean_text(name, 100)) for name in shown)
    text = ", ".join(format_html('<a href="{}">{}</a>', href, name) if href else _escaped(name) for href, name in links)
    if others:
        text += format_html(' <span class="rtq-soft" title="{}">+{}</span>', ", ".join(others), len(others))
    return text


def _small(column: Column, row: Any, viewer: Viewer) -> str:
    """What is shown below a value, or a state beside it."""
    value = column.of(row)
    text = _text(column, row, value, viewer)
    if not text or not value:
        return ""
    if column.kind.is_state:
        return f" {text}"
    hint = format_html(' title="{}"', clean_text(column.hint(row), 300)) if column.hint else ""
    if str(column.title):
        text = _("%(what)s: %(text)s") % {"what": escape(str(column.title)), "text": text}
    css = (column.css(row) if column.css else "") or "rtq-soft"
    return f'<div class="{css}"{hint}>{text}</div>'


def _tick(name: str, label: str) -> str:
    label = escape(label % {"id": clean_text(name, 40)})
    return f'<td class="rtq-tick"><input type="checkbox" name="id" value="{escape(name)}" aria-label="{label}"></td>'


def _menu(actions: str) -> str:
    summary = f'<summary aria-label="{escape(_("Actions"))}">⋯</summary>'
    menu = f'<details class="rtq-more">{summary}<div>{actions}</div></details>' if actions else ""
    return f'<td class="rtq-menu">{menu}</td>'


def buttons(sheet: Sheet[Any], row: Any, viewer: Viewer, actions: Sequence[Verb] = ()) -> str:
    """What can be done with a row: in its menu, or on its own page, where that may be something else."""
    shown = (verb for verb in actions or sheet.actions if viewer.may(verb.permission) and verb.applies(row))
    return mark_safe(" ".join(_button(verb, _address(sheet, row, verb, viewer)) for verb in shown))


def _address(sheet: Sheet[Row], row: Row, verb: Verb, viewer: Viewer) -> str:
    if verb.page:
        return verb.page(row, viewer.url, viewer.here)
    path, query = sheet.where(row)
    query = {**query, "next": viewer.here} if verb.question else query
    return viewer.url(f"{sheet.model}_{verb.name}", *path, query=query)


def _button(verb: Verb, address: str) -> str:
    """The button of an action, which sends the form of the page, or the link to the page that asks before."""
    address, label = escape(address), escape(str(verb.label))
    if verb.question:
        css = "" if verb.is_harmless else " rtq-danger"
        return f'<a class="rtq-button{css}" href="{address}">{label} …</a>'
    css = ' class="rtq-main"' if verb.is_harmless else ""
    return f'<button form="rtq-act" formaction="{address}"{css}>{label}</button>'
