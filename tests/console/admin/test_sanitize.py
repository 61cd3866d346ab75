"""Sanitised texts, formatted numbers, charts and URL parameters."""

import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest
from django.http import QueryDict

from django_rtq.console.admin import query_params
from django_rtq.console.admin.time_charts import scale_maximum
from django_rtq.console.formatting import format_duration, format_number, format_percent
from django_rtq.console.render.column import ago_html, polyline_points, sparkline
from django_rtq.console.sanitize import clean_text, pretty_json


def first_20(given):
    return clean_text(given, 20)


def number_of(text):
    """That in an address; 1 without one, and 100 at the most."""
    return query_params.get_int(QueryDict(mutable=True) | {"n": text}, "n", 1, maximum=100)


SHOWN = {
    first_20: {  # safe to look at
        "plain": "plain",
        "two\nlines\t": "two\nlines\t",
        "a\u202eb": "a\\u202eb",
        "\x00\x1b": "\\x00\\x1b",
        "日本": "日本",
        "\ud800": "\\ud800",
        "x" * 30: "x" * 20 + "…",
        None: "None",
    },
    pretty_json: {  # where it can be JSON
        "é": '"é"',
        timedelta(seconds=1): '"P0DT00H00M01S"',
        datetime(2026, 1, 1, 12, tzinfo=timezone.utc).timetz(): '"12:00:00+00:00"',
        float("inf"): "Infinity",
        frozenset({1}): "frozenset({1})",
    },
    format_duration: {  # in the unit that a person would take
        None: "\u2013",
        0: "0 ms",
        0.0001: "< 1 ms",
        0.0421: "42 ms",
        1.26: "1.3 s",
        59.6: "60 s",
        600: "10 min",
        10_000: "3 h",
        8_640_000_000: "100,000 d",
    },
    # with as many digits as mean something
    format_number: {None: "\u2013", 0: "0", 1234567: "1,234,567", 0.25: "0.25", 6.24: "6.2", 1234.5: "1,234"},
    format_percent: {None: "\u2013", 0: "0 %", 0.0001: "< 0.1 %", 0.004: "0.4 %", 0.25: "25 %", 1: "100 %"},
    # round numbers
    scale_maximum: {0: 1, 1: 1, 3: 5, 7: 10, 11: 20, 499: 500, 0.03: pytest.approx(0.05)},
    number_of: {"7": 7, "": 1, "-3": 1, "1e3": 1, "٣": 1, "9" * 30: 1, "500": 100},
}


@pytest.mark.parametrize(
    ("show", "given", "shown"), [(show, *case) for show, cases in SHOWN.items() for case in cases.items()]
)
def test_values_are_shown_safe_and_short(show, given, shown):
    assert show(given) == shown


def test_values_are_shown_as_json_in_lines():
    assert pretty_json({"a": [1]}) == '{\n  "a": [\n    1\n  ]\n}'


def test_moments_carry_the_absolute_time():
    now = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    html = ago_html(now - timedelta(minutes=10), now)
    assert (
        html
        == '<time datetime="2026-02-03T03:55:06+00:00" title="2026-02-03 03:55:06 UTC" dir="auto">10 min ago</time>'
    )
    assert ">in 5.0 s<" in ago_html(now + timedelta(seconds=5), now)


def test_lines_stay_inside_their_picture():
    places = [tuple(map(float, place.split(","))) for place in polyline_points([0, 5, 10], 100, 20, 10).split()]
    assert places == [(0, 19), (50, 10), (100, 1)]
    assert polyline_points([0, 0, 0, 0, 4], 100, 20, 4) == "0,19 75,19 100,1"
    assert "nan" not in sparkline([], "none") + sparkline([0, 0], "zero")


def test_a_small_line_of_many_figures_has_few_points_and_the_last_ones_are_among_them():
    assert 'points="0,23 27,23 28,1 29,1"' in sparkline([0] * 56 + [1] * 4, "much")


def test_a_theme_may_load_the_filters_before_the_admin():
    program = """
import django
from django.conf import settings
apps = ["contenttypes", "auth", "messages", "admin.apps.SimpleAdminConfig"]
settings.configure(INSTALLED_APPS=[*(f"django.contrib.{app}" for app in apps), "django_rtq"])
django.setup()
import django_rtq.templatetags.rtq
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
