"""The runs of one task, by the hour."""

import pytest

from django_rtq.console.histogram import bucket_of
from django_rtq.console.reading.metrics.reader import TaskMetrics
from tests.console.lua.test_task_metrics import count_runs, tell
from tests.support.jobs import QUEUE


def test_the_runs_of_one_task_are_told_for_all_queues(redis, broker, readers):
    tell(broker, "done ship", 6, "failed ship", 2, "crashed ship", 1, "done mail", 4, "done other.ship", 9)
    tell(broker, "done ship", 1, "dead ship", 1, queue="low")

    found = readers.tasks.get("ship")

    assert found.total == TaskMetrics(done=7, failed=2, crashed=1, dead=1)
    assert found.hours[-1] == found.total
    assert len(found.hours) == 49
    assert {*found.hours[:-1]} == {TaskMetrics()}


def test_each_hour_has_its_own(redis, broker, keys, hour, readers):
    count_runs(redis, keys, hour, {0: 1, 1: 10, 2: 100, 4: 1000, 48: 7, 49: 9999})
    broker.register_queues([QUEUE])

    found = readers.tasks.get("ship")

    assert [each.done for each in found.hours] == [7, *[0] * 43, 1000, 0, 100, 10, 1]
    assert found.begins_at.timestamp() == (hour - 48) * 3600


@pytest.mark.parametrize("others", [0, 600])
def test_other_names_beside_it_do_not_count(redis, broker, keys, hour, readers, others):
    tell(broker, "done ship", 6, "done my ship", 2, "done ", 3, "r12 ship", 6, "w12 ship", 5, "r12 shipping", 1)
    redis.hset(keys.tasks + str(hour).encode(), mapping={"x": 1, "done x": 1})
    for start in range(0, others, 300):
        tell(broker, *(word for n in range(start, start + 300) for word in (f"done ship{n}", 1)))

    found = readers.tasks.get("ship")

    assert (found.total.done, found.total.runs, found.total.waits) == (6, {12: 6}, {12: 5})


@pytest.mark.parametrize("seconds", [0.0, 1e-7, 0.00037, 0.124, 1.0, 3599.0, 1e7])
def test_each_duration_is_in_the_histograms(redis, broker, readers, seconds):
    run, wait = bucket_of(seconds), bucket_of(round(seconds * 1000))
    tell(broker, "done ship", 3, f"r{run} ship", 3, f"w{wait} ship", 2)

    found = readers.tasks.get("ship")

    assert (found.total.runs, found.total.waits) == ({run: 3}, {wait: 2})
    assert found.total.run_p50 == found.hours[-1].run_p50 is not None


def test_nobody_has_run_it(redis, broker, readers):
    found = readers.tasks.get("ship")
    assert (found.total, found.queues, found.groups, len(found.hours)) == (TaskMetrics(), [], [], 49)
    assert not found.is_known
