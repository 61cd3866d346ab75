"""The runs of tasks that failed lately: by the minute, and in a row."""

from dataclasses import replace

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE, claimed_job


@pytest.fixture
def report(broker):
    """Counts runs of a task, as a worker process reports them: done, failed."""
    broker.register_queues([QUEUE])

    def counts(done, failed, task="ship"):
        numbers = [value for name, n in (("done", done), ("failed", failed)) if n for value in (f"{name} {task}", n)]
        broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, len(numbers) // 2, *numbers)]))

    return counts


@pytest.fixture
def failures(readers):
    """What is told of the queue: task -> its failures."""
    return lambda: readers.overview.read().queues[0].task_failures


def minutes_later(redis, broker, minutes):
    """Let the counters of all minutes be those of earlier minutes."""
    keys = broker.keys.of(QUEUE)
    for key in sorted([*redis.keys(keys.done_runs + b"*"), *redis.keys(keys.failed_runs + b"*")]):
        name, _, minute = key.rpartition(b":")
        redis.rename(key, name + b":%d" % (int(minute) - minutes))


def test_runs_are_counted_by_the_minute_if_some_failed(redis, report, failures):
    report(20, 2)
    report(5, 0)
    report(9, 0, task="pay")

    (found,) = failures().items()

    assert found[0] == "ship"
    assert found[1].lately == (2, 27)
    assert (found[1].in_a_row, found[1].since) == (0, None)


@pytest.mark.parametrize(("ago", "lately"), [(0, 12), (2, 12), (5, 0)])
def test_minutes_count_until_they_are_too_long_ago(redis, broker, readers, report, failures, ago, lately):
    report(10, 2)
    minutes_later(redis, broker, ago)

    found = failures().get("ship")

    assert (found.lately.runs if found else 0) == lately
    when = [minute for minute, runs in found.minutes.items() if runs.runs] if found else []
    assert when == [int(readers.overview.read().now.timestamp()) // 60 - ago] * bool(lately)


def test_runs_that_failed_in_a_row_are_told_since_the_first(redis, broker, readers, report, failures):
    report(5000, 0)
    report(0, 4)
    assert failures()["ship"].in_a_row == 0
    before = readers.overview.read().now
    report(0, 8)

    found = failures()["ship"]

    assert found.in_a_row == 12
    assert 0 <= (before - found.since).total_seconds() < 5
    minutes_later(redis, broker, 60)
    assert failures()["ship"].in_a_row == 12  # they may wait for their next attempts


def test_a_run_that_succeeds_ends_them(report, failures):
    report(0, 12)
    report(1, 0)
    assert failures()["ship"].in_a_row == 0
    report(0, 5)
    report(1, 7)
    assert failures()["ship"].in_a_row == 0


def test_a_task_has_recovered_when_fifty_runs_in_a_row_succeeded(redis, keys, report, failures):
    report(0, 2000)
    report(30, 0)
    report(5, 1)
    report(49, 0)
    assert [(sum(runs.failed for runs in each.minutes.values())) for each in failures().values()] == [2001]
    report(1, 0)

    assert failures() == {}
    assert not redis.exists(keys.failing)
    assert not redis.keys(keys.failed_runs + b"*")


def test_crashes_are_failed_runs(broker, report, failures):
    report(0, 11)
    job = claimed_job(broker, body='{"task":"ship"}')
    broker.reclaim_child(QUEUE, "w1", [job.id])

    assert failures()["ship"].in_a_row == 12


def test_the_runs_of_this_hour_and_the_one_before_are_told_of_tasks_that_failed(redis, keys, report, failures):
    report(5, 2)
    report(7, 0, task="pay")
    (hour,) = redis.keys(keys.tasks + b"*")
    name, _, number = hour.rpartition(b":")
    for back in (1, 2):
        redis.hset(name + b":%d" % (int(number) - back), mapping={"done ship": 10**back, "failed ship": 3})

    assert {task: each.hours for task, each in failures().items()} == {"ship": (5, 20)}


def test_all_of_it_goes_away(redis, keys, report):
    report(2, 1)
    report(0, 1)

    (done,), (failed,) = redis.keys(keys.done_runs + b"*"), redis.keys(keys.failed_runs + b"*")
    assert 500 < redis.ttl(done) <= 600
    assert 500 < redis.ttl(failed) <= 600
    assert 86_000 < redis.ttl(keys.failing) <= 86_400


def test_of_very_many_tasks_the_later_ones_are_not_counted(redis, keys, report, failures):
    report(1, 0, task="first")
    report(0, 12)
    (done,), (failed,) = redis.keys(keys.done_runs + b"*"), redis.keys(keys.failed_runs + b"*")
    for key, value in ((done, 1), (failed, 1), (keys.failing, "1 2 3")):
        redis.hset(key, mapping={f"filler-{number}": value for number in range(10_000)})

    report(0, 12, task="pay")
    report(0, 1)

    assert redis.hlen(failed) == redis.hlen(keys.failing) == 10_001
    assert failures()["ship"].in_a_row == 13
    assert "pay" not in failures()


def test_tasks_that_failed_with_the_two_newest_versions_are_told_with_both(broker, report, failures, monkeypatch):
    for version, failed in (("v42", 9), ("v43", 0), ("v44", 3)):
        monkeypatch.setattr(broker, "config", replace(broker.config, version=version))
        report(20, failed)
        report(20, 0, task="pay")

    assert failures()["ship"].versions == {"v44": (3, 23), "v43": (0, 20)}
    assert failures()["ship"].in_a_row == 0
    assert "pay" not in failures()
