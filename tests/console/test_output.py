"""Text for terminals: safe, short, and in units that a person would take."""

from datetime import timedelta
from operator import itemgetter

import pytest
from django.utils import timezone
from django.utils.translation import override

from django_rtq.console.output import ago, count, duration
from django_rtq.console.render.column import NUMBER, TEXT, Column
from django_rtq.console.render.terminal import table
from django_rtq.core.commands.command import one_line
from tests.support.commands import Terminal, run


@pytest.mark.parametrize(("seconds", "text"), [(None, "-"), (1234.5, "21 min"), (200_000_000, "2,315 d")])
def test_durations_are_told_in_english(seconds, text):
    with override("de"):
        assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("plain ä 日本", None, "plain ä 日本"),
        ("a\r\n\tb\x1b[0m\x9b\u2028\u202e\udc80", None, "a\\r\\n\\tb\\x1b[0m\\x9b\\u2028\\u202e\\udc80"),
        ("1.0\xa0MB of 1\u202f000", None, "1.0 MB of 1 000"),
        ("12345", 5, "12345"),
        ("123456", 5, "12..."),
        ("\n\n\n", 5, "\\n..."),
        (ValueError("x"), None, "x"),
    ],
)
def test_text_of_others_is_one_safe_line(text, most, line):
    assert one_line(text, most) == line


def test_numbers_and_nouns():
    assert [count(number, "job") for number in (0, 1, 1234)] == ["0 jobs", "1 job", "1,234 jobs"]


def test_columns_are_as_wide_as_their_widest_cell_and_cells_are_safe():
    columns = [
        Column("name", "", itemgetter(0)),
        Column("n", "", itemgetter(1), NUMBER),
        Column("", "last", itemgetter(2)),
    ]

    assert table(columns, [("日本", 1, "x"), ("e\u0301", 1234, ""), ("a\nb", None, None)]) == [
        "NAME      N  LAST",
        "日本      1  x",
        "e\u0301     1,234  -",
        "a\\nb      -  -",
    ]


LONG = ("the-name-is-never-cut", "日本" * 10, "0123456789" * 3, 1_000_000)


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (None, f"{LONG[0]}  {LONG[1]}  {LONG[2]}  1,000,000"),
        (106, f"{LONG[0]}  {LONG[1]}  {LONG[2]}  1,000,000"),
        (90, f"{LONG[0]}  {'日本' * 6}...  {LONG[2][:24]}...  1,000,000"),
        (60, f"{LONG[0]}  日本日本...   012345678...  1,000,000"),
        (20, f"{LONG[0]}  日本...   01234...  1,000,000"),
    ],
)
def test_long_texts_are_cut_to_the_width(width, row):
    names = enumerate(("NAME", "TEXT", "MORE", "NUMBER"))
    kinds = {"NUMBER": NUMBER}
    columns = [Column(name, "", itemgetter(place), kinds.get(name, TEXT)) for place, name in names]

    assert table(columns, [LONG], width)[1] == row


@pytest.mark.parametrize(
    ("out", "options", "is_cut"),
    [(Terminal, {}, True), (Terminal, {"verbosity": 2}, False), (type(None), {}, False)],
    ids=["terminal", "-v 2", "pipe"],
)
def test_only_a_terminal_gets_lines_of_its_width(broker, monkeypatch, out, options, is_cut):
    monkeypatch.setenv("COLUMNS", "60")
    broker.sign_on(["default"], "web1-11")
    queues = [f"queue-{number}" for number in range(10)]
    broker.heartbeat(["default"], {"web1-11": {"queues": ",".join(queues)}}, promote=False)

    lines = run("rtq_workers", "list", out=out(), no_color=True, **options).out.splitlines()

    assert ("queue-9" not in lines[1]) is is_cut


@pytest.mark.parametrize(
    ("seconds", "text"), [(180, "3 min ago"), (-7300, "in 2 h"), (200_000, "2 d ago"), (0, "1.0 s ago")]
)
def test_moments_are_told_by_their_distance(seconds, text):
    assert ago(seconds if seconds is None else timezone.now() - timedelta(seconds=seconds)) == text
