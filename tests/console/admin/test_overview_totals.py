"""The figures at the top of the overview: what is healthy is not amber."""

import pytest

from django_rtq.console.admin.display.overview import totals
from tests.console.incidents.overviews import overview, row, worker


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
