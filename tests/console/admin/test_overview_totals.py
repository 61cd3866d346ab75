"""The figures at the top of the overview: what is healthy is neither amber nor red."""

import pytest

from django_rtq.console.admin.display.overview import figures, totals
from tests.console.incidents.overviews import minutes, overview, row, worker


def cell(title, *rows, **options):
    """The text and the class of a figure."""
    (found,) = [each for each in totals(overview(*rows, **options), lambda *names: "") if each["title"] == title]
    return found["text"], found["css"]


@pytest.mark.parametrize(
    ("rows", "text", "css"),
    [
        ([row(), row("low")], "alive", ""),
        ([row(), row("legacy", scheduler_seconds=None)], "alive; none for legacy", ""),
        ([row(), row("legacy", scheduler_seconds=900.0, scheduled=1)], "15 min ago", "rtq-is-warn"),
        ([row(scheduler_seconds=900.0)], "15 min ago", ""),
    ],
)
def test_a_scheduler_is_missed_where_jobs_wait_for_their_time(rows, text, css):
    assert cell("Scheduler", *rows) == (text, css)


def test_lost_workers_are_not_counted():
    assert cell("Workers", row(), workers=[worker(), worker(lease_left_seconds=-1.0)])[0] == "1"


def test_four_figures_say_how_it_goes():
    rows = [row("slow", oldest_seconds=900.0, counts={"succeeded": minutes(3, 3), "failed": minutes(1, 1)}, running=1)]
    rows += [row("paused", oldest_seconds=9000.0, paused=True), row(dead=2, counts={"dead": minutes(2)})]
    shown = figures(overview(*rows, workers=[worker(), worker(slots=4)]), lambda *names: " ".join(names))
    assert [(each["text"], each["note"], each["css"]) for each in shown] == [
        ("15 min", "slow", "rtq-is-bad"),
        ("25 %", "2 of 8 in 5 min", "rtq-is-bad"),
        ("1", "of 5 slots", ""),
        ("2", "2 in the last hour", "rtq-is-bad"),
    ]
    limited = figures(overview(row("slow", oldest_seconds=900.0, is_at_limit=True)), lambda *names: "")
    assert [(each["text"], each["css"]) for each in limited[:1]] == [("15 min", "")]
    empty = figures(overview(), lambda *names: "")
    assert [(each["text"], each["css"]) for each in empty] == [("–", "rtq-zero")] * 2 + [("0", "rtq-zero")] * 2  # noqa: RUF001
