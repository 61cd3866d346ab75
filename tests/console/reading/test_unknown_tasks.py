"""Unknown tasks, as people see them."""

import pytest

from django_rtq.console.reading.details import UnknownTask
from tests.core.broker.test_note_unknown_task import PARK_MS, TASK, note
from tests.support.jobs import claimed_job


@pytest.mark.parametrize(
    ("ago_ms", "slices_ago", "jobs"), [(0, 0, 7), (0, 1, 3), (2 * PARK_MS, 2, 3), (2 * PARK_MS + 1, 2, None)]
)
def test_it_is_read_for_a_minute(ago_ms, slices_ago, jobs):
    now = 100 * PARK_MS + 5
    line = f"{now - 90_000} {now - ago_ms} {100 - slices_ago} 3 7 web1:7:x web2:7:x"

    found = UnknownTask.read_all({TASK.encode(): line.encode()}, now)

    assert [(each.task, each.jobs, each.workers, round(each.since.timestamp() * 1000)) for each in found] == (
        [(TASK, jobs, ["web1:7:x", "web2:7:x"], now - 90_000)] if jobs else []
    )


def test_the_overview_names_them(broker, readers):
    claimed_job(broker, "a")
    note(broker)
    (row,) = readers.overview.read().queues
    assert [(each.task, each.jobs, each.workers) for each in row.unknown_tasks] == [(TASK, 1, ["web1:7:x"])]
