"""Cells of pages: grey zeros, links, labels for phones, and nothing that is not escaped."""

from types import SimpleNamespace

import pytest
from django.utils.html import conditional_escape

from django_rtq.console.render.column import DURATION, NAMES, NUMBER, SHARE, Column, State, states
from django_rtq.console.render.html import Viewer, figures, listing, tables
from django_rtq.console.render.sheet import Empty, Filter, Found, Sheet, Wanted

STATE = states({"open": State("open"), "shut": State("shut", "paused")})


class Shops(Sheet):
    model, title, empty, order, searches = "shop", "Shops", Empty("None"), "name", "Part of the name"
    columns = (
        Column("name", "Shop", link=lambda row, url: url("shop_change", row.name), is_sortable=True),
        Column("city", "City", under="name"),
        Column("state", "State", kind=STATE, under="name"),
        Column("sales", "Sales", kind=NUMBER, css=lambda row: "rtq-is-bad", is_sortable=True),
        Column("wait", "Wait", kind=DURATION, is_sortable=True),
        Column("share", "Share", kind=SHARE),
        Column("brands", "Brands", kind=NAMES, link=lambda brand, url: f"/{brand}", hint=lambda row: row.hint),
    )
    filters = {"big": Filter("Big", lambda row: row.sales > 5)}
    rows = ()

    def read(self, readers):
        return self.rows


SHEET = Shops()
VIEWER = Viewer(
    url=lambda name, *args, query=None: f"/{name}{'/'.join(args)}?{query or ''}", may=lambda permission: True
)


def shop(name, **values):
    plain = {"city": "", "state": "open", "sales": 0, "wait": None, "share": None, "brands": [], "hint": ""}
    return SimpleNamespace(name=name, **{**plain, **values})


def html(*rows):
    return tables(SHEET, rows, VIEWER)[0]["rows"]


def test_what_is_nothing_is_grey_and_what_is_not_known_a_dash():
    assert '<td class="rtq-n rtq-zero" data-rtq-label="Sales">0</td>' in html(shop("a"))
    assert '<td class="rtq-n rtq-is-bad" data-rtq-label="Sales">1,234</td>' in html(shop("a", sales=1234))
    assert 'data-rtq-label="Wait">\N{EN DASH}</td>' in html(shop("a"))
    assert 'data-rtq-label="Share">25 %</td>' in html(shop("a", share=0.25))
    assert "<td></td>" in html(shop("a"))  # of brands: a phone shows nothing


def test_texts_of_others_are_escaped():
    text = html(shop("<b>\u202e", city="<i>", brands=["<u>"], hint="<s>"))

    assert "<b>" not in text
    assert not any(tag in text for tag in ("<i>", "<u>", "<s>"))
    assert "&lt;b&gt;\\u202e" in text
    (wait,) = [each["text"] for each in figures(SHEET, shop("a", wait=0.0001), VIEWER) if each["title"] == "Wait"]
    assert conditional_escape(wait) == "&lt; 1 ms"


def test_a_name_is_a_link_and_what_is_below_it_small_with_its_title():
    text = html(shop("a", city="Rome", state="shut"))

    assert '<th scope="row"><a href="/shop_changea?">a</a>' in text
    assert '<div class="rtq-soft">City: Rome</div>' in text
    assert '<span class="rtq-state rtq-state-paused">shut</span>' in text
    assert "rtq-state" not in html(shop("a"))  # what is as usual is not said


def test_of_many_names_some_are_links():
    text = html(shop("a", brands=list("abcdefg")))

    assert text.count('<a href="/') == 6  # with its own
    assert '<span class="rtq-soft" title="f, g">+2</span>' in text


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (Wanted(), "cab"),
        (Wanted(sort="name"), "abc"),
        (Wanted(sort="name", is_reversed=True), "cba"),
        (Wanted(sort="wait"), "bca"),  # the longest first, and last what is not known
        (Wanted(sort="wait", is_reversed=True), "cba"),
        (Wanted(search="A"), "a"),
        (Wanted(state="big"), "c"),
        (Wanted(page=2), ""),
    ],
)
def test_rows_are_searched_filtered_sorted_and_paged(wanted, names, monkeypatch):
    rows = (shop("c", sales=9, wait=1), shop("a"), shop("b", wait=2))
    monkeypatch.setattr(Shops, "rows", rows)

    found = SHEET.find(None, wanted)

    assert "".join(row.name for row in found.rows) == names
    assert found.known == 3


def test_heads_sort_and_say_how_the_list_is_sorted():
    wanted = Wanted(sort="sales")
    heads = {head["title"]: head for head in tables(SHEET, [shop("a")], VIEWER, wanted)[0]["heads"]}

    assert (heads["Sales"]["order"], heads["Shop"]["order"], heads["Share"]["url"]) == ("descending", "", "")
    assert "'sort': '-sales'" in heads["Sales"]["url"]
    assert "'sort': ''" in heads["Shop"]["url"]  # the usual order


@pytest.mark.parametrize(
    ("page", "links"), [(1, (False, True)), (2, (True, True)), (3, (True, False)), (9, (True, False))]
)
def test_pages_are_linked(page, links):
    shown = listing(SHEET, Found([shop("a")], 120, 120), Wanted(page=page), VIEWER)

    assert (bool(shown["previous_url"]), bool(shown["next_url"])) == links
