"""Text for terminals: safe, short, and in units that a person would take."""

import pytest

from django_rtq.management.output import Column, count, duration, one_line, table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (119.9, "2 min"),
        (120, "2 min"),
        (7140, "119 min"),
        (7200, "2 h"),
        (169_200, "47 h"),
        (172_800, "2 d"),
        (200_000_000, "2,315 d"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("plain ä 日本", None, "plain ä 日本"),
        ("a\r\n\tb\x1b[0m\x9b\u2028\u202e\udc80", None, "a\\r\\n\\tb\\x1b[0m\\x9b\\u2028\\u202e\\udc80"),
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


def test_columns_are_as_wide_as_their_widest_cell():
    columns = [Column("NAME"), Column("N", right=True), Column("LAST")]

    assert table(columns, [("日本", "1", "x"), ("e\u0301", "1,234", "")]) == [
        "NAME      N  LAST",
        "日本      1  x",
        "e\u0301     1,234",
    ]
