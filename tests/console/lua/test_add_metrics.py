"""What workers count is added up, with a time limit and no more names than there is room for."""

from dataclasses import replace

import pytest

from django_rtq.core.broker.settlement import Settlement
from tests.support.jobs import QUEUE
from tests.support.snapshots import snapshot


def tell(broker, *calls):
    assert broker.settle("w1", QUEUE, Settlement(metrics=[(0, 0, *call) for call in calls])) == []


def test_counters_and_clients_are_added_up(redis, broker):
    tell(broker, (1, "done ship", 3, "x", 3, 1_500), (0, "y", 1, 500))
    tell(broker, (2, "done ship", 4, "r-3 ship", 4))

    after = snapshot(redis)
    assert after["tasks"] == {"done ship": "7", "r-3 ship": "4"}
    assert after["client_runs"] == {"x": "3", "y": "1", "\n": "2000", "\nruns": "4"}
    assert after["client_time"] == {"x": 1500, "y": 500}


def test_all_of_it_goes_away(redis, broker):
    tell(broker, (1, "done ship", 3, "x", 3, 1_500))

    left = {key.split(b":")[-2].decode(): redis.ttl(key) for key in redis.keys("{rtq:*")}
    assert 49 * 3600 < left["tasks"] <= 50 * 3600
    assert 3600 < left["client_runs"] <= 70 * 60
    assert 3600 < left["client_time"] <= 70 * 60


@pytest.mark.parametrize(("key", "call"), [("tasks", (1, "new", 1)), ("client_runs", (0, "new", 1, 5))])
def test_of_very_many_names_the_later_ones_are_not_counted(redis, broker, key, call):
    tell(broker, (1, "done ship", 3, "x", 3, 1_500))
    (name,) = redis.keys(f"*:{key}:*")
    redis.hset(name, mapping={f"filler-{number}": 1 for number in range(10_000)})

    tell(broker, call, (1, "done ship", 1, "x", 1, 500))

    after = snapshot(redis)
    assert "new" not in after[key]
    assert (after["tasks"]["done ship"], after["client_runs"]["x"], after["client_time"]["x"]) == ("4", "4", 2000)


def test_the_sums_of_all_count_those_too_that_have_no_room(redis, broker):
    tell(broker, (0, "x", 3, 1_500))
    (name,) = redis.keys("*:client_runs:*")
    redis.hset(name, mapping={f"filler-{number}": 1 for number in range(10_000)})

    tell(broker, (0, "new", 1, 500))

    after = snapshot(redis)["client_runs"]
    assert (after["\n"], after["\nruns"]) == ("2000", "4")


def test_run_times_and_wait_times_of_the_queue_are_added_up(redis, broker):
    for call in ((12, 7, 1, "done ship", 1), (1, 0, 0, "x", 1, 1_000), (0, 0, 0, "y", 1, 1_000)):
        broker.settle("w1", QUEUE, Settlement(metrics=[call]))

    assert snapshot(redis)["stats"] == {"run_ms": 13, "wait_ms": 7}


@pytest.fixture
def run_by(broker, monkeypatch):
    """Counts runs of a task with a version of the project: done, failed."""

    def count_runs(version, done, failed, task="ship"):
        monkeypatch.setattr(broker, "config", replace(broker.config, version=version))
        tell(broker, (4, f"done {task}", done, f"failed {task}", failed, f"r12 {task}", done, f"w12 {task}", done))

    return count_runs


def test_runs_are_counted_by_the_version_of_the_project(redis, broker, readers, run_by):
    broker.register_queues([QUEUE])
    for version, failed in (("v43", 5), ("v44", 10)):
        run_by(version, 100 - failed, failed)
    run_by("v44", 40, 0, task="pay")

    ship, of_queue = readers.tasks.get("ship").versions, readers.queue(QUEUE).versions

    numbers = {each.version: (each.metrics.done, each.metrics.failed, each.metrics.runs) for each in ship}
    assert numbers == {"v44": (90, 10, {12: 90}), "v43": (95, 5, {12: 95})}
    assert [(each.version, each.metrics.done, each.metrics.failed) for each in of_queue] == [
        ("v44", 130, 10),
        ("v43", 95, 5),
    ]
    assert {6 * 86_400 < redis.ttl(key) <= 7 * 86_400 for key in redis.keys("*:vv4?")} == {True}


def test_only_the_newest_versions_are_kept(redis, broker, readers, run_by):
    broker.register_queues([QUEUE])
    for number in range(7):
        run_by(f"v{number}", 1, 1)
        redis.zadd(broker.keys.of(QUEUE).run_versions, {f"v{number}": number})

    assert [each.version for each in readers.tasks.get("ship").versions] == ["v6", "v5", "v4", "v3", "v2"]
    assert len(redis.keys("*:vv?")) == 10
