"""Charts over time: axes, scale, marks and the table of values."""

import re
from datetime import datetime, timedelta, timezone

import pytest
from django.utils.timezone import override

from django_rtq.console.admin.time_charts import SPANS, Line, Steps, history_charts, time_chart
from django_rtq.console.formatting import format_duration
from django_rtq.console.reading.metrics.reader import Deploy
from django_rtq.console.reading.metrics.time_series import Series

BEGIN = datetime(2026, 3, 1, 10, 5, tzinfo=timezone.utc)


def steps(number=60, seconds=60, begins_at=BEGIN):
    return Steps(begins_at=begins_at, seconds=seconds, number=number)


def area(title, css, values):
    return Line(title, css, values, is_area=True)


def deploy(minute, version):
    return Deploy(at=BEGIN + timedelta(minutes=minute), version=version)


def chart(values, *more, of=None, **options):
    return time_chart("x", "Runs", of or steps(len(values)), [area("succeeded", "ok", values), *more], **options)


def paths(svg, css):
    """The `d` of the elements with that class."""
    return re.findall(rf'<path class="{css}" d="([^"]*)"', svg)


def tick_texts(chart):
    return [tick["text"] for tick in chart["ticks"]]


def test_bands_are_stacked_and_the_uppermost_is_drawn_first():
    svg = chart([1, 2, 1], area("failed", "bad", [1, 0, 3]))["svg"]

    assert paths(svg, "ok") == ["M0 200H0V160H10V120H20V160H30V200Z"]
    assert paths(svg, "bad") == ["M0 200H0V120H20V40H30V200Z"]
    assert svg.index('class="bad"') < svg.index('class="ok"')


def test_a_line_has_gaps_where_there_is_no_value_and_a_single_value_is_as_wide_as_a_step():
    svg = time_chart("x", "Wait", steps(5), [Line("wait", "w", [1.0, 1.0, None, 0.5, None])])["svg"]

    assert paths(svg, "w") == ["M5 0L15 0M35 100m-5 0h10"]


def test_the_height_has_round_numbers_with_their_unit():
    assert chart([1, 340])["heights"] == ["500", "250", "0"]
    assert chart([0, 0])["heights"] == ["1", "0.50", "0"]
    for seconds, heights in ((0.3, ["500 ms", "250 ms", "0 ms"]), (0.0001, ["2 ms", "1 ms", "0 ms"])):
        durations = time_chart("x", "", steps(1), [Line("run", "", [seconds])], write=format_duration)
        assert durations["heights"] == heights


@pytest.mark.parametrize(
    ("number", "seconds", "texts"),
    [
        (59, 60, ["10:10", "10:20", "10:30", "10:40", "10:50", "11:00"]),
        (71, 1200, ["12:00", "16:00", "20:00", "00:00", "04:00", "08:00"]),
        (83, 7200, ["Mon 2", "Tue 3", "Wed 4", "Thu 5", "Fri 6", "Sat 7"]),
        (59, 43_200, ["6 Mar", "11 Mar", "16 Mar", "21 Mar", "26 Mar"]),
    ],
)
def test_the_axis_has_round_times(number, seconds, texts):
    found = chart([1] * number, of=steps(number, seconds))
    assert [text for text in tick_texts(found) if text in texts] == texts
    assert len(tick_texts(found)) <= len(texts) + 1


def test_times_are_those_of_the_zone_of_the_user_which_is_named():
    with override(timezone(timedelta(hours=5, minutes=30), "MMT")):
        found = chart([1] * 59)
    assert tick_texts(found)[0] == "15:40"
    assert found["zone"] == "MMT"
    assert "15:35 · succeeded 1" in found["svg"]


def test_a_burst_is_cut_off_and_the_chart_says_so():
    found = chart([100] * 40 + [58_000] + [120] * 18)

    assert found["heights"][0] == "500"
    assert found["note"] == "Cut off at 500: the highest value is 58,000, at 10:45."
    assert min(int(y) for y in re.findall(r"V(\d+)", *paths(found["svg"], "ok"))) == 0


@pytest.mark.parametrize("values", [[0] * 59, [0] * 58 + [1000], [1] * 5 + [1000], list(range(59))])
def test_what_is_no_burst_is_not_cut_off(values):
    assert chart(values)["note"] == ""


def test_events_within_the_time_are_marked():
    svg = chart([1] * 60, deploys=[deploy(minute, f"<{minute}>") for minute in (-1, 0, 7.5, 61.5)])["svg"]

    assert re.findall(r'<path class="rtq-mark" d="M(\d+) 0V200"><title>(.*?)</title>', svg) == [
        ("0", "10:05 Version &lt;0&gt; started"),
        ("75", "10:12 Version &lt;7.5&gt; started"),
    ]
    assert "<title>10:12 · succeeded 1 · 10:12 Version &lt;7.5&gt; started</title>" in svg  # where a keyboard reads it


def test_the_table_has_averages_of_a_twelfth():
    found = chart([1] * 30 + [3] * 30)
    assert len(found["rows"]) == 12
    assert (found["rows"][0], found["rows"][-1]) == (("10:05", ["1"], []), ("11:00", ["3"], []))
    assert (found["has_marks"], found["labels"]) == (False, [])


def test_marks_are_in_their_row_of_the_table():
    found = chart([1] * 60, deploys=[deploy(minute, f"v{minute}") for minute in (0, 4.9, 61)])

    marked = {when: titles for when, _, titles in found["rows"] if titles}
    assert found["has_marks"]
    assert marked == {
        "10:05": ["10:05 Version v0 started", "10:09 Version v4.9 started"],
        "11:00": ["11:05 Version v61 started"],
    }


def test_labels_do_not_overlap_and_stay_within_the_chart():
    said = [(0, "first"), (10, "no room"), (30, "x" * 40), (42, "no room"), (58, "no room"), (59.5, "last")]
    labels = chart([1] * 60, deploys=[deploy(*each) for each in said])["labels"]

    assert [(each["percent"], each["text"], each["anchor"]) for each in labels] == [
        ("99.2", "last", "end"),
        ("50.0", "x" * 11 + "…", "middle"),
        ("16.7", "no room", "middle"),
    ]


def series(number, step_seconds, **counts):
    return Series(begins_at=BEGIN, step_seconds=step_seconds, steps=number, counts=counts)


def test_crashes_are_not_counted_as_failures_again():
    (runs, _) = history_charts([series(60, 60, failed=[5] * 60, crashed=[2] * 60, succeeded=[1] * 60)], SPANS["1h"])
    assert "succeeded 1 · failed 3 · crashed 2" in runs["svg"]


def test_a_week_is_compared_with_the_week_before():
    of_queue = series(168, 7200, succeeded=[120] * 84 + [240] * 84, failed=[120] * 84 + [0] * 84)
    (runs, _) = history_charts([of_queue, of_queue], SPANS["7d"])

    assert [each.title for each in runs["key"]] == ["succeeded", "failed", "crashed", "a week before"]
    assert "2026-03-08 10:05 · succeeded 4 · failed 0 · crashed 0 · a week before 4" in runs["svg"]
    assert runs["svg"].count("<rect") == 83


def test_the_average_of_no_runs_is_not_nought():
    (_, times) = history_charts([series(60, 60, wait_ms=[0] * 60, succeeded=[0] * 59 + [1])], SPANS["1h"])
    assert "wait \N{EN DASH}" in times["svg"]


@pytest.mark.parametrize("number", [25, 31])
def test_the_data_table_has_the_value_of_each_step_if_there_are_few(number):
    found = chart([189.0, *[0.0] * (number - 1)])
    assert (len(found["rows"]), found["rows"][0][1]) == (number, ["189"])
